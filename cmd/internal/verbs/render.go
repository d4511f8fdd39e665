package verbs

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/bootstrap"
	"github.com/proxyward/proxyward/internal/cli"
)

// rendered is what `render` prints.
type rendered struct {
	Profile  string         `json:"profile"`
	Revision string         `json:"revision"`
	Files    []renderedFile `json:"files"`
}

// renderedFile is one file with its secrets masked.
type renderedFile struct {
	Path    string `json:"path"`
	Mode    string `json:"mode"`
	Unit    string `json:"unit"`
	Content string `json:"content"`
}

// Render is the verb `render`.
func Render(a *App, c *common) *cobra.Command {
	var in inputs
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Show the files that a profile gives, secrets masked",
		Long: `render shows the files that bootstrap would write, with every secret masked: the
environment file and the drop-in of each unit. With --host-root they are those of
that host, its own mirrors included; without, those of a host that has the
profile's targets (containerd, when it names none) and no mirrors.

Nothing is written. To write the files into a tree, secrets included, use
bootstrap --files --host-root DIR.

Exit codes: 0 shown, 1 failed, 2 the profile or what goes with it cannot be used.`,
		Example: fmt.Sprintf(`  %[1]s render --profile corp.yaml --credentials creds/
  %[1]s render --profile corp.yaml --credentials creds/ --host-root / -o json | jq -r '.files[].path'`, a.Name),
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			input, err := in.input()
			if err != nil {
				return err
			}
			found, err := in.found(input.Profile.Spec.Targets)
			if err != nil {
				return err
			}
			wanted, err := bootstrap.Resolve(input, found)
			if err != nil {
				return err
			}
			result := filesOf(wanted)
			err = c.print.Print(result, func(w io.Writer, colour cli.Colour) error { return writeRendered(w, colour, result) })
			for _, n := range wanted.Notes {
				c.print.Warn(n.String())
			}
			return err
		},
	}
	in.addProfile(cmd)
	in.addCredentials(cmd)
	in.addHostRoot(cmd, "", "show the files of the host whose tree is here")
	return cmd
}

func filesOf(wanted bootstrap.Wanted) rendered {
	out := rendered{Profile: wanted.Profile, Revision: wanted.Revision}
	for _, unit := range wanted.Units {
		for _, f := range unit.Files {
			out.Files = append(out.Files, renderedFile{
				Path: f.Path, Mode: fmt.Sprintf("%#o", f.Mode.Perm()), Unit: unit.Unit, Content: string(f.Masked),
			})
		}
	}
	return out
}

func writeRendered(w io.Writer, colour cli.Colour, r rendered) error {
	for i, f := range r.Files {
		gap := "\n"
		if i == 0 {
			gap = ""
		}
		if _, err := fmt.Fprintf(w, "%s%s\n%s", gap, colour.Bold(fmt.Sprintf("==> %s (mode %s) <==", f.Path, f.Mode)), f.Content); err != nil {
			return err
		}
	}
	return nil
}
