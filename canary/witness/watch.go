package witness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Interval between two looks at the sockets.
const Interval = 10 * time.Millisecond

// Kernel lists all TCP connections of one network namespace.
type Kernel interface {
	Connections() ([]Sample, error)
	Close() error
}

// Watch is a running look at a process tree's connections.
type Watch struct {
	cancel context.CancelFunc
	done   chan struct{}
	tally  *tally
	err    error
}

// Start begins to watch the connections that the process and its children open from now on, in
// the network namespace of that process. It needs the right to see other users' sockets and files.
func Start(ctx context.Context, pid int) (*Watch, error) {
	kernel, err := openKernel(pid)
	if err != nil {
		return nil, err
	}
	w, err := start(ctx, kernel, func() (map[uint32]bool, error) { return socketsOf("/proc", pid) })
	if err != nil {
		return nil, errors.Join(err, kernel.Close())
	}
	return w, nil
}

func start(ctx context.Context, kernel Kernel, owned func() (map[uint32]bool, error)) (*Watch, error) {
	before, err := kernel.Connections()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Watch{cancel: cancel, done: make(chan struct{}), tally: newTally(before)}
	go func() {
		defer close(w.done)
		w.err = errors.Join(w.run(ctx, kernel, owned), kernel.Close())
	}()
	return w, nil
}

func (w *Watch) run(ctx context.Context, kernel Kernel, owned func() (map[uint32]bool, error)) error {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		last := false
		select {
		case <-ctx.Done():
			last = true // one more look: idle connections still carry their counters
		case <-tick.C:
		}
		samples, err := kernel.Connections()
		if err != nil {
			return err
		}
		if err := w.tally.add(samples, owned); err != nil {
			return err
		}
		if last {
			return nil
		}
	}
}

// Stop ends the watch and returns the connections that were opened during it. They are valid
// beside an error too, as far as the watch came.
func (w *Watch) Stop() ([]Socket, error) {
	w.cancel()
	<-w.done
	return w.tally.sockets(), w.err
}

// socketsOf returns the inodes of the sockets that a process and its descendants hold. A process
// that ends meanwhile has none.
func socketsOf(proc string, pid int) (map[uint32]bool, error) {
	inodes := map[uint32]bool{}
	if _, err := os.Stat(filepath.Join(proc, strconv.Itoa(pid))); err != nil {
		return nil, fmt.Errorf("looking at the daemon's process: %w", err)
	}
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		dir := filepath.Join(proc, strconv.Itoa(queue[0]))
		if err := socketsIn(filepath.Join(dir, "fd"), inodes); err != nil {
			return nil, err
		}
		children, err := childrenOf(dir)
		if err != nil {
			return nil, err
		}
		queue = append(queue, children...)
	}
	return inodes, nil
}

func socketsIn(dir string, inodes map[uint32]bool) error {
	fds, err := os.ReadDir(dir)
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing open files: %w", err)
	}
	for _, fd := range fds {
		target, err := os.Readlink(filepath.Join(dir, fd.Name()))
		if gone(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading an open file: %w", err)
		}
		number, ok := strings.CutPrefix(target, "socket:[")
		if !ok {
			continue
		}
		inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 32)
		if err != nil {
			return fmt.Errorf("reading socket %q of %q: %w", target, dir, err)
		}
		inodes[uint32(inode)] = true
	}
	return nil
}

// childrenOf reads every thread's children, as proc(5) lists them.
func childrenOf(dir string) ([]int, error) {
	lists, err := filepath.Glob(filepath.Join(dir, "task", "*", "children"))
	if err != nil {
		return nil, fmt.Errorf("listing threads of %q: %w", dir, err)
	}
	var children []int
	for _, list := range lists {
		raw, err := os.ReadFile(list)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the daemon's children: %w", err)
		}
		for field := range strings.FieldsSeq(string(raw)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, fmt.Errorf("reading a child in %q: %w", list, err)
			}
			children = append(children, child)
		}
	}
	return children, nil
}
