//go:build linux

package lab

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// state is what is recorded of a lab, in state.json of its folder. Names of
// namespaces and interfaces and all addresses follow from the index, so a record
// of index and node names is a record of all of them.
type state struct {
	Name        string
	Dir         string
	Index       int
	Token       string // value of the marker in the environment of the lab's processes
	Detached    bool
	Generation  Generation // of nodes that do not name one
	Credentials Credentials
	NodeList    []nodeRecord
	Helpers     string // folder of the helper programs
	Processes   map[string]processID

	mu sync.Mutex
}

type nodeRecord struct {
	Name       string
	Number     int // from 1; gives the address
	Generation Generation
	Full       bool
	Docker     bool
}

func (r nodeRecord) spec() NodeSpec {
	return NodeSpec{Name: r.Name, Generation: r.Generation, Full: r.Full, Docker: r.Docker}
}

func newState(cfg Config, dir, helpers string, index int) (*state, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the lab's folder: %w", err)
	}
	s := &state{
		Name: cfg.Name, Dir: dir, Index: index, Token: rand.Text(), Detached: cfg.Detach, Generation: cfg.Generation,
		Credentials: cfg.Credentials, Helpers: helpers, Processes: map[string]processID{},
	}
	return s, s.save()
}

func statePath(dir string) string { return filepath.Join(dir, "state.json") }

// loadState returns nil where nothing is recorded.
func loadState(dir string) (*state, error) {
	raw, err := os.ReadFile(statePath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the lab's record: %w", err)
	}
	s := &state{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("reading the lab's record %q: %w", statePath(dir), err)
	}
	return s, nil
}

// save replaces the record in one step.
func (s *state) save() error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the lab's record: %w", err)
	}
	tmp := statePath(s.Dir) + ".tmp"
	if err := os.WriteFile(tmp, raw, 0o600); err != nil {
		return fmt.Errorf("writing the lab's record: %w", err)
	}
	if err := os.Rename(tmp, statePath(s.Dir)); err != nil {
		return fmt.Errorf("writing the lab's record: %w", err)
	}
	return nil
}

// addNode records a node before anything of it exists.
func (s *state) addNode(spec NodeSpec) (nodeRecord, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := nodeRecord{Name: spec.Name, Number: 1, Generation: spec.Generation, Full: spec.Full, Docker: spec.Docker}
	for _, other := range s.NodeList {
		if other.Name == spec.Name {
			return r, fmt.Errorf("adding node %q: the lab has one of that name", spec.Name)
		}
		r.Number = max(r.Number, other.Number+1)
	}
	if r.Number > maxNodes {
		return r, fmt.Errorf("adding node %q: a lab holds at most %d", spec.Name, maxNodes)
	}
	s.NodeList = append(s.NodeList, r)
	return r, s.save()
}

func (s *state) nodeRecords() []nodeRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.NodeList)
	slices.SortFunc(list, func(a, b nodeRecord) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

func (s *state) setProcess(name string, id processID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Processes[name] = id
	return s.save()
}

func (s *state) process(name string) (processID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.Processes[name]
	return id, ok
}

func (s *state) path(elem ...string) string {
	return filepath.Join(append([]string{s.Dir}, elem...)...)
}

// The networks of a lab: 10.66.INDEX.0/24 is the corporate one with nodes and
// services, 198.18.INDEX.0/24 (set aside for benchmarks by RFC 2544, and not
// private by RFC 1918) plays the internet.
const (
	hostOctet     = 254
	proxyOctet    = 2
	firstNode     = 20
	maxNodes      = 200
	externalOctet = 10
)

func (s *state) subnet() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 66, byte(s.Index), 0}), 24)
}

func (s *state) externalSubnet() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(s.Index), 0}), 24)
}

func (s *state) addr(octet int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 66, byte(s.Index), byte(octet)})
}

func (s *state) externalAddr(octet int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18, byte(s.Index), byte(octet)})
}

// bridgeMAC is a locally administered address (RFC 9542, section 2.1).
func (s *state) bridgeMAC() string { return fmt.Sprintf("02:00:0a:42:%02x:01", s.Index) }

func (s *state) servicesNS() string               { return fmt.Sprintf("pwlab%d-services", s.Index) }
func (s *state) nodeNS(r nodeRecord) string       { return fmt.Sprintf("pwlab%d-%s", s.Index, r.Name) }
func (s *state) hostLink() string                 { return fmt.Sprintf("pwlab%d", s.Index) }
func (s *state) nodeAddr(r nodeRecord) netip.Addr { return s.addr(firstNode + r.Number - 1) }
