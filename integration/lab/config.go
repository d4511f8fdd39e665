//go:build linux

package lab

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

var (
	labName  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	nodeName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,11}$`)
)

// complete fills the defaults in and checks the rest.
func (c *Config) complete() error {
	c.Generation = cmp.Or(c.Generation, Trixie)
	c.StateDir = cmp.Or(c.StateDir, DefaultStateDir)
	if !filepath.IsAbs(c.StateDir) {
		return fmt.Errorf("checking the folder of labs %q: want an absolute path", c.StateDir)
	}
	d := DefaultCredentials()
	c.Credentials.ProxyUser = cmp.Or(c.Credentials.ProxyUser, d.ProxyUser)
	c.Credentials.ProxyPassword = cmp.Or(c.Credentials.ProxyPassword, d.ProxyPassword)
	c.Credentials.RegistryUser = cmp.Or(c.Credentials.RegistryUser, d.RegistryUser)
	c.Credentials.RegistryPassword = cmp.Or(c.Credentials.RegistryPassword, d.RegistryPassword)
	if !labName.MatchString(c.Name) {
		return fmt.Errorf("checking the lab's name: %q: want lower-case letters, digits and hyphens, at most 32", c.Name)
	}
	c.Nodes = slices.Clone(c.Nodes)
	seen := map[string]bool{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if err := n.complete(c.Generation); err != nil {
			return err
		}
		if seen[n.Name] {
			return fmt.Errorf("checking node %q: the name is used twice", n.Name)
		}
		seen[n.Name] = true
	}
	return nil
}

func (n *NodeSpec) complete(generation Generation) error {
	n.Generation = cmp.Or(n.Generation, generation)
	n.Full = n.Full || n.Docker
	if !nodeName.MatchString(n.Name) {
		return fmt.Errorf("checking node %q: want lower-case letters, digits and hyphens, at most 12", n.Name)
	}
	if !slices.Contains(generations(), n.Generation) {
		return fmt.Errorf("checking node %q: unknown generation %q: want one of %v", n.Name, n.Generation, generations())
	}
	return nil
}

// checkHost says why a lab cannot run here, before anything is touched.
func checkHost() error {
	if os.Geteuid() != 0 {
		return errors.New("checking the host: the lab makes namespaces and mounts: run it as root")
	}
	if _, err := os.Stat("/proc/self/ns/net"); err != nil {
		return fmt.Errorf("checking the host: no network namespaces in this kernel: %w", err)
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("checking the host: the lab is made of Debian packages: %w", err)
	}
	return nil
}

// checkStateDir makes the folder of labs and says so if squid, which gives up
// root, could not get at its files there.
func checkStateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("creating the folder of labs: %w", err)
	}
	for d := filepath.Clean(dir); d != filepath.Dir(d); d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err != nil {
			return fmt.Errorf("checking the folder of labs: %w", err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("checking the folder of labs %q: mode %#o of %q keeps squid's user out: choose another", dir, info.Mode().Perm(), d)
		}
	}
	return nil
}
