//go:build linux

package lab

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	if !slices.Contains([]Generation{Bookworm, Trixie, Sid}, n.Generation) {
		return fmt.Errorf("checking node %q: unknown generation %q: want %s, %s or %s", n.Name, n.Generation, Bookworm, Trixie, Sid)
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
