//go:build linux

package lab

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/proxyward/proxyward/integration/internal/pki"
)

// Attach finds a lab that is up, also one of another process; nil and
// no error where there is none of that name. An empty stateDir means
// [DefaultStateDir]. The lab returned does not own the lab: its Down fails while
// another process does.
func Attach(name, stateDir string, progress io.Writer) (*Lab, error) {
	cfg := Config{Name: name, StateDir: stateDir}
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s, err := loadState(filepath.Join(cfg.StateDir, name))
	if err != nil || s == nil || !s.claimed() {
		return nil, err
	}
	l := &Lab{state: s, progress: progress, nodes: map[string]*Node{}}
	if l.pki, err = pki.Load(s.path("pki")); err != nil {
		return nil, fmt.Errorf("attaching to lab %q, which is half up: remove it with `lab down --name %s`: %w", name, name, err)
	}
	for _, r := range s.nodeRecords() {
		n := &Node{Name: r.Name, IP: s.nodeAddr(r), Spec: r.spec(), lab: l, record: r}
		if id, ok := s.process(n.unit() + "-init"); ok && id.alive() {
			n.init = id
			l.nodes[n.Name] = n
		}
	}
	return l, nil
}

// List names the labs recorded in stateDir; empty means [DefaultStateDir].
func List(stateDir string) ([]string, error) {
	if stateDir == "" {
		stateDir = DefaultStateDir
	}
	entries, err := os.ReadDir(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing labs: %w", err)
	}
	var names []string
	for _, e := range entries {
		if _, err := os.Stat(statePath(filepath.Join(stateDir, e.Name()))); err == nil {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Services tells of each background process of the lab whether it runs.
func (l *Lab) Services() map[string]bool {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	services := map[string]bool{}
	for name, id := range l.state.Processes {
		services[name] = id.alive()
	}
	return services
}
