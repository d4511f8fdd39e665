package verbs

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/internal/cli"
)

// versionResult is what `version` prints.
type versionResult struct {
	Program string `json:"program"`
	Version string `json:"version"`
	Go      string `json:"go"`
	// Platform is the operating system and architecture that it was built for.
	Platform string `json:"platform"`
}

// Version is the verb `version`.
func Version(a *App, c *common) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which version this is", Args: noArguments,
		Long: `version says which version of the program this is, and what it was built with and for.

Exit codes: 0 said, 1 failed, 2 the arguments are wrong.`,
		Example: fmt.Sprintf("  %[1]s version\n  %[1]s version -o json", a.Name),
		RunE: func(*cobra.Command, []string) error {
			v := versionResult{Program: a.Name, Version: a.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			return c.print.Print(v, func(w io.Writer, _ cli.Colour) error {
				_, err := fmt.Fprintf(w, "%s %s (%s, %s)\n", v.Program, v.Version, v.Go, v.Platform)
				return err
			})
		},
	}
}
