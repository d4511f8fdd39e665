package verbs

import (
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/cli"
	"github.com/proxyward/proxyward/internal/proxyenv"
)

// explained is what `explain` says of one host.
type explained struct {
	// Asked is the argument, URL what was made of it.
	Asked string         `json:"asked"`
	URL   string         `json:"url"`
	Route v1alpha1.Route `json:"route"`
	// Proxy that is asked, with credentials masked.
	Proxy string `json:"proxy,omitempty"`
	// Entry of NO_PROXY that decided.
	Entry *v1alpha1.NoProxyEntry `json:"entry,omitempty"`
	Why   string                 `json:"why"`
}

// Explain is the verb `explain`.
func Explain(a *App, c *common) *cobra.Command {
	var in inputs
	cmd := &cobra.Command{
		Use:   "explain HOST...",
		Short: "Say which way a host is reached, and what decides it",
		Long: `explain answers, for each host, whether the daemons of a node reach it through the
proxy or directly, and which NO_PROXY entry says so. The answers are those of Go's
own matcher, which the container runtimes and the kubelet use.

A host may be a name, an address, host:port or a URL; without a scheme https is
meant. No credentials are needed, and nothing is asked of the network.

Exit codes: 0 answered, 1 failed, 2 the profile or a host cannot be used.`,
		Example: fmt.Sprintf(`  %[1]s explain --profile corp.yaml registry.k8s.io registry.corp.example:5000
  %[1]s explain --profile corp.yaml 10.20.3.4 fd00::1 http://metadata.google.internal
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
			answers, err := explain(proxyenv.NewMatcher(env), args)
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
	return cmd
}

func explain(matcher *proxyenv.Matcher, hosts []string) ([]explained, error) {
	var out []explained
	for _, host := range hosts {
		d := matcher.Decide(urlOf(host))
		if d.Err != nil {
			return nil, &cli.BadInputError{Err: d.Err}
		}
		e := explained{Asked: v1alpha1.MaskURL(host), URL: d.URL, Route: v1alpha1.RouteProxy, Entry: d.Entry, Why: d.Why}
		if d.Direct {
			e.Route = v1alpha1.RouteDirect
		} else {
			e.Proxy = d.Proxy.Masked()
		}
		out = append(out, e)
	}
	return out, nil
}

// urlOf makes a URL of what a person types.
func urlOf(host string) string {
	if strings.Contains(host, "://") {
		return host
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		host = "[" + host + "]"
	}
	return "https://" + host
}

func writeExplained(w io.Writer, colour cli.Colour, answers []explained) error {
	table := cli.Table{Header: []string{"HOST", "ROUTE", "BY", "WHY"}}
	for _, e := range answers {
		by, paint := e.Proxy, colour.Yellow
		if e.Route == v1alpha1.RouteDirect {
			by, paint = "-", colour.Green
			if e.Entry != nil {
				by = e.Entry.Value
			}
		}
		table.Painted(cli.Cell{Text: e.Asked}, cli.Cell{Text: strings.ToLower(string(e.Route)), Paint: paint}, cli.Cell{Text: by}, cli.Cell{Text: e.Why})
	}
	return table.Write(w, colour, 0)
}
