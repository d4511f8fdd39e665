package verbs

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/bootstrap"
	"github.com/proxyward/proxyward/internal/cli"
)

// Remove is the verb `remove`.
func Remove(a *App, c *common) *cobra.Command {
	var in inputs
	cmd := &cobra.Command{
		Use:   "remove",
		Short: "Leave this host clean of Proxyward",
		Long: `remove takes every file of Proxyward off the host, has systemd forget them, and
restarts the daemons that run with what they said. Files without Proxyward's header
are left alone. No profile is needed.

The lock and the record of past changes stay in /var/lib/proxyward.

Exit codes: 0 clean, 1 failed, and the host is as it was unless the output says
otherwise, 2 the arguments are wrong.`,
		Example: fmt.Sprintf("  %[1]s remove\n  %[1]s remove --host-root /mnt/image", a.Name),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			host, err := in.open(cmd.Context())
			if err != nil {
				return err
			}
			defer host.Close()
			progress := c.print.Progress()
			began := time.Now()
			report, err := bootstrap.Remove(cmd.Context(), host, tell(progress))
			progress.End()
			if err != nil {
				return err
			}
			if report.Clean() {
				return c.print.Print(report, func(w io.Writer, colour cli.Colour) error {
					return writeReport(w, colour, report, colour.Green("clean")+" in "+time.Since(began).Round(100*time.Millisecond).String())
				})
			}
			return c.finish(report, bootstrap.StageProof, time.Since(began))
		},
	}
	in.addHostRoot(cmd, "/", "directory with the host's tree")
	return cmd
}
