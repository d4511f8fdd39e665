// Package verbs has one file for each verb of Proxyward's programs: its flags, its help and how its
// result reads. What a verb does is done by the packages it calls.
package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/bootstrap"
	"github.com/proxyward/proxyward/internal/cli"
	"github.com/proxyward/proxyward/internal/profilefile"
)

// App is one of the programs.
type App struct {
	// Name of the program, as people type it.
	Name string
	// Short says in one line what it is, Long in some more.
	Short, Long string
	// Version that was built.
	Version  string
	Out, Err io.Writer
	// Getenv gives the variables of the environment.
	Getenv func(string) string
}

// Verb makes one verb of a program.
type Verb func(*App, *common) *cobra.Command

// common is what all verbs share.
type common struct {
	format cli.Format
	// print is ready when a verb runs.
	print *cli.Printer
	// began says that the arguments were accepted: a failure after that is not one of usage.
	began bool
}

// Run runs the program and returns its exit code.
func (a *App) Run(ctx context.Context, args []string, verbs ...Verb) int {
	shared := &common{format: cli.Text}
	root := a.root(shared, verbs)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !shared.began {
		err = cli.BadInput("%w; see %s --help", err, cmd.CommandPath())
	}
	var input *bootstrap.InputError
	if errors.As(err, &input) {
		err = &cli.BadInputError{Err: err}
	}
	if err != nil && !cli.Said(err) {
		a.sayError(shared, err)
	}
	return cli.ExitCode(err)
}

func (a *App) root(shared *common, verbs []Verb) *cobra.Command {
	root := &cobra.Command{
		Use: a.Name, Short: a.Short, Long: a.Long,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			shared.began = true
			shared.print = cli.NewPrinter(a.Out, a.Err, shared.format, a.Getenv)
		},
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().VarP(&shared.format, "output", "o", "how the result is printed")
	for _, verb := range verbs {
		root.AddCommand(verb(a, shared))
	}
	return root
}

// sayError tells a person what went wrong, each field that cannot be used on a line of its own.
func (a *App) sayError(shared *common, err error) {
	colour := cli.Colour(false)
	if shared.print != nil {
		colour = shared.print.ErrColour
	}
	lines := []string{strings.TrimSpace(err.Error())}
	var file *profilefile.Error
	var fields v1alpha1.FieldErrors
	switch {
	case errors.As(err, &file):
		lines = strings.Split(file.Error(), "\n")
	case errors.As(err, &fields):
		lines = strings.Split(fields.Error(), "\n")
	}
	for _, line := range lines {
		fmt.Fprintln(a.Err, colour.Red("error:"), line)
	}
	if cli.ExitCode(err) == cli.ExitBadInput {
		fmt.Fprintln(a.Err, "nothing was changed")
	}
}
