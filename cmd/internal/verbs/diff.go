package verbs

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/bootstrap"
	"github.com/proxyward/proxyward/internal/cli"
)

// exitDiffers is how `diff` ends when there is something to do.
const exitDiffers = 3

// Diff is the verb `diff`.
func Diff(a *App, c *common) *cobra.Command {
	var in inputs
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "Say how this host differs from a profile, and what would be done",
		Long: `diff compares a host with a profile in four layers: the files, what systemd loaded,
what the running daemons have, and what wins above their environment. It shows each
step that bootstrap would take, and why; secrets are masked. It changes nothing.

On a plain tree (--host-root) without a systemd only the files can be compared, and
that is said.

Exit codes: 0 nothing to do, 1 failed, 2 the profile or what goes with it cannot be
used, 3 the host differs.`,
		Example: fmt.Sprintf(`  %[1]s diff --profile corp.yaml --credentials creds/
  %[1]s diff --profile corp.yaml --credentials creds/ --host-root /mnt/image -o yaml`, a.Name),
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			input, err := in.input()
			if err != nil {
				return err
			}
			host, err := in.open(cmd.Context())
			if err != nil {
				return err
			}
			defer host.Close()
			preview, err := bootstrap.Look(cmd.Context(), host, input)
			if err != nil {
				return err
			}
			err = c.print.Print(preview, func(w io.Writer, colour cli.Colour) error { return writePreview(w, colour, preview) })
			if err != nil || !preview.Differs() {
				return err
			}
			next := " bootstrap with the same flags carries it out and proves it"
			if host.Systemd == nil {
				next = " bootstrap --files with the same flags writes the files"
			}
			c.print.Next(a.Name + next)
			return &cli.ExitError{Code: exitDiffers}
		},
	}
	in.addProfile(cmd)
	in.addCredentials(cmd)
	in.addHostRoot(cmd, "/", "directory with the host's tree")
	return cmd
}

func writePreview(w io.Writer, colour cli.Colour, p bootstrap.Preview) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "profile %s, revision %s\n", p.Profile, p.Revision)
	writeUnits(b, colour, p.Units)
	if p.Diff != "" {
		fmt.Fprintf(b, "\n%s\n", strings.TrimRight(colourDiff(colour, p.Diff), "\n"))
	}
	writeActions(b, colour, p.Actions, "\nwould be done:")
	if p.Refused != "" {
		fmt.Fprintf(b, "\n%s %s\n", colour.Red("refused:"), p.Refused)
	}
	for _, n := range p.Notes {
		fmt.Fprintf(b, "%s %s\n", colour.Yellow("note:"), n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// colourDiff colours the lines of a unified diff.
func colourDiff(colour cli.Colour, diff string) string {
	lines := strings.Split(diff, "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
			lines[i] = colour.Bold(line)
		case strings.HasPrefix(line, "+"):
			lines[i] = colour.Green(line)
		case strings.HasPrefix(line, "-"):
			lines[i] = colour.Red(line)
		}
	}
	return strings.Join(lines, "\n")
}
