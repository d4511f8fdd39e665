package verbs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/bootstrap"
	"github.com/proxyward/proxyward/internal/cli"
	"github.com/proxyward/proxyward/internal/desired"
	"github.com/proxyward/proxyward/internal/hostfs"
	"github.com/proxyward/proxyward/internal/node"
	"github.com/proxyward/proxyward/internal/prober"
	"github.com/proxyward/proxyward/internal/profilefile"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

// inputs are the flags that say what is wanted.
type inputs struct {
	profile, credentials, ca, pullSecret string
	// hostRoot is where the host's tree is.
	hostRoot string
}

// given is what the flags led to.
type given struct {
	profile     *v1alpha1.ProxyProfile
	credentials *proxyenv.Credentials
	ca          []byte
	caSHA256    string
}

func (in *inputs) addProfile(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&in.profile, "profile", "p", "", "file with the ProxyProfile (required)")
	cmd.Flags().StringVar(&in.ca, "ca", "", "PEM file with what the profile's trustedCA holds in the cluster")
}

func (in *inputs) addCredentials(cmd *cobra.Command) {
	cmd.Flags().StringVar(&in.credentials, "credentials", "", "directory with the files username and password, raw, as a mounted Secret has them")
}

func (in *inputs) addPullSecret(cmd *cobra.Command) {
	cmd.Flags().StringVar(&in.pullSecret, "pull-secret", "", "file with the .dockerconfigjson of the canaries' pull Secrets")
}

// noArguments refuses what stands beside the flags. Cobra's own check calls it an unknown command,
// as if the verb had verbs below it.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("reading the arguments: found %q, and %s takes flags only", args[0], cmd.Name())
	}
	return nil
}

// open opens the host that the flags name. A directory that is not there is bad input: nothing can
// have been changed in it.
func (in *inputs) open(ctx context.Context) (*node.Node, error) {
	if _, err := hostfs.Open(in.hostRoot); err != nil {
		return nil, &cli.BadInputError{Err: err}
	}
	return node.Open(ctx, in.hostRoot)
}

func (in *inputs) addHostRoot(cmd *cobra.Command, fallback, meaning string) {
	cmd.Flags().StringVar(&in.hostRoot, "host-root", fallback, meaning)
}

// load reads what the flags name. Whatever cannot be read or used is bad input.
func (in *inputs) load() (given, error) {
	var g given
	if in.profile == "" {
		return g, cli.BadInput("no profile given; write --profile FILE")
	}
	var err error
	if g.profile, err = profilefile.Load(in.profile); err != nil {
		return g, &cli.BadInputError{Err: err}
	}
	if in.credentials != "" {
		if g.credentials, err = profilefile.ReadCredentials(in.credentials); err != nil {
			return g, &cli.BadInputError{Err: err}
		}
	}
	return g, in.loadCA(&g)
}

func (in *inputs) loadCA(g *given) error {
	named := g.profile.Spec.Proxy.TrustedCA != nil
	switch {
	case !named && in.ca == "":
		return nil
	case !named:
		return cli.BadInput("a CA is given and the profile names none; leave out --ca, or name the ConfigMap in spec.proxy.trustedCA")
	case in.ca == "":
		return cli.BadInput("spec.proxy.trustedCA: the profile names a CA; give its PEM file with --ca FILE")
	}
	pem, err := os.ReadFile(in.ca)
	if err != nil {
		return cli.BadInput("reading the trusted CA: %w", err)
	}
	sum := sha256.Sum256(pem)
	g.ca, g.caSHA256 = pem, hex.EncodeToString(sum[:])
	return nil
}

// resolve makes the revision of what was given. Fields that cannot be used are bad input.
func (g given) resolve(defaults []v1alpha1.Target) (*v1alpha1.ProxyRevisionSpec, []proxyenv.Note, error) {
	revision, notes, err := proxyenv.Resolve(proxyenv.Input{Profile: g.profile, CASHA256: g.caSHA256, DefaultTargets: defaults})
	var fields v1alpha1.FieldErrors
	if err != nil && !errors.As(err, &fields) {
		err = &cli.BadInputError{Err: err}
	}
	return revision, notes, err
}

// input is what a host is to be made, with the secrets.
func (in *inputs) input() (bootstrap.Input, error) {
	g, err := in.load()
	if err != nil {
		return bootstrap.Input{}, err
	}
	input := bootstrap.Input{Profile: g.profile, Credentials: g.credentials, CA: g.ca, CASHA256: g.caSHA256}
	if in.credentials != "" {
		if input.CredentialsVersion, err = version(in.credentials); err != nil {
			return bootstrap.Input{}, &cli.BadInputError{Err: err}
		}
	}
	if in.pullSecret != "" {
		if input.Logins, err = prober.ReadPullSecret(in.pullSecret); err != nil {
			return bootstrap.Input{}, &cli.BadInputError{Err: err}
		}
	}
	return input, nil
}

// version of the credentials in a directory: when they were last written. A digest would let
// whoever reads it try passwords against it.
func version(dir string) (string, error) {
	var last time.Time
	for _, name := range []string{"username", "password"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("reading credentials: %w", err)
		}
		if info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return "written " + last.UTC().Format(time.RFC3339Nano), nil
}

// found returns the daemons of the host that is named, or those of a host that has exactly what the
// profile targets.
func (in *inputs) found(targets []v1alpha1.Target) ([]runtimes.Runtime, error) {
	if in.hostRoot == "" {
		return desired.Assume(targets), nil
	}
	root, err := hostfs.Open(in.hostRoot)
	if err != nil {
		return nil, &cli.BadInputError{Err: err}
	}
	found, _, err := desired.Find(root, targets)
	return found, err
}

// environment is what the daemons get, for questions that need no secret: without credentials, and
// with a host's mirrors only where one is named.
func (in *inputs) environment() (proxyenv.Environment, error) {
	g, err := in.load()
	if err != nil {
		return proxyenv.Environment{}, err
	}
	revision, _, err := g.resolve(nil)
	if err != nil {
		return proxyenv.Environment{}, err
	}
	found, err := in.found(g.profile.Spec.Targets)
	if err != nil {
		return proxyenv.Environment{}, err
	}
	revision.CredentialsSecretName = ""
	env, err := proxyenv.ForNode(proxyenv.NodeInput{Revision: revision, Mirrors: desired.Mirrors(found)})
	if err != nil {
		return proxyenv.Environment{}, &cli.BadInputError{Err: err}
	}
	return env, nil
}
