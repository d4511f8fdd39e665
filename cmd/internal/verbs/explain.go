package verbs

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/cli"
	"github.com/proxyward/proxyward/internal/proxyenv"
)

// explained is what `explain` says of one host.
type explained struct {
	// Asked is the argument, URL what was made of it.
	Asked string `json:"asked"`
	URL   string `json:"url"`
	// Client whose rules these are.
	Client proxyenv.Client `json:"client"`
	Route  v1alpha1.Route  `json:"route"`
	// Proxy that is asked, with credentials masked.
	Proxy string `json:"proxy,omitempty"`
	// Entry of NO_PROXY that decided.
	Entry *v1alpha1.NoProxyEntry `json:"entry,omitempty"`
	Why   string                 `json:"why"`
}

// Explain is the verb `explain`.
func Explain(a *App, c *common) *cobra.Command {
	var in inputs
	var client string
	cmd := &cobra.Command{
		Use:   "explain HOST...",
		Short: "Say which way a host is reached, and what decides it",
		Long: `explain answers, for each host, whether the daemons of a node reach it through the
proxy or directly, and which NO_PROXY entry says so. The answers are those of Go's
own matcher, which the container runtimes and the kubelet use.

--client asks for the rules of another program, or of all: what a pod, a script or a
credential helper on the node makes of the same variables.

A host may be a name, an address, host:port or a URL; without a scheme https is
meant. No credentials are needed, and nothing is asked of the network.

Exit codes: 0 answered, 1 failed, 2 the profile or a host cannot be used.`,
		Example: fmt.Sprintf(`  %[1]s explain --profile corp.yaml registry.k8s.io registry.corp.example:5000
  %[1]s explain --profile corp.yaml 10.20.3.4 fd00::1 http://metadata.google.internal
  %[1]s explain --profile corp.yaml --client all 10.20.3.4
  %[1]s explain --profile corp.yaml --host-root / mirror.corp.example -o json   # with this node's mirrors`, a.Name),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("no host given; write the hosts to explain")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			env, err := in.environment()
			if err != nil {
				return err
			}
			clients, err := clientsNamed(client)
			if err != nil {
				return err
			}
			answers, err := explain(env, args, clients)
			if err != nil {
				return err
			}
			return c.print.Print(answers, func(w io.Writer, colour cli.Colour) error {
				return writeExplained(w, colour, answers)
			})
		},
	}
	in.addProfile(cmd)
	in.addHostRoot(cmd, "", "take the mirrors configured on the host whose tree is here into account")
	cmd.Flags().StringVar(&client, "client", string(proxyenv.ClientGo), "whose rules: "+clientNames()+", or all")
	return cmd
}

func clientNames() string {
	var names []string
	for _, d := range proxyenv.Dialects() {
		names = append(names, string(d.Client))
	}
	return strings.Join(names, ", ")
}

func clientsNamed(name string) ([]proxyenv.Client, error) {
	var all []proxyenv.Client
	for _, d := range proxyenv.Dialects() {
		if string(d.Client) == name {
			return []proxyenv.Client{d.Client}, nil
		}
		all = append(all, d.Client)
	}
	if name != "all" {
		return nil, cli.BadInput("--client: found %q; write %s, or all", name, clientNames())
	}
	return all, nil
}

func explain(env proxyenv.Environment, hosts []string, clients []proxyenv.Client) ([]explained, error) {
	var out []explained
	for _, host := range hosts {
		for _, client := range clients {
			d := proxyenv.Explain(env, host, client)
			if d.Err != nil {
				return nil, &cli.BadInputError{Err: d.Err}
			}
			e := explained{Asked: v1alpha1.MaskURL(host), URL: d.URL, Client: client, Route: v1alpha1.RouteProxy, Entry: d.Entry, Why: d.Why}
			if d.Direct {
				e.Route = v1alpha1.RouteDirect
			} else {
				e.Proxy = d.Proxy.Masked()
			}
			out = append(out, e)
		}
	}
	return out, nil
}

func writeExplained(w io.Writer, colour cli.Colour, answers []explained) error {
	table := cli.Table{Header: []string{"HOST", "CLIENT", "ROUTE", "BY", "WHY"}}
	for _, e := range answers {
		by, paint := e.Proxy, colour.Yellow
		if e.Route == v1alpha1.RouteDirect {
			by, paint = "-", colour.Green
			if e.Entry != nil {
				by = e.Entry.Value
			}
		}
		table.Painted(cli.Cell{Text: e.Asked}, cli.Cell{Text: string(e.Client)}, cli.Cell{Text: strings.ToLower(string(e.Route)), Paint: paint}, cli.Cell{Text: by}, cli.Cell{Text: e.Why})
	}
	return table.Write(w, colour, 0)
}
