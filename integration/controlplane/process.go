package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

const (
	// stopGrace is how long a program has to end after SIGTERM. The API
	// server would wait a minute for clients that keep a watch open, and
	// nothing here is worth that wait: etcd has what was acknowledged.
	stopGrace = 5 * time.Second
	// killGrace is how long the kernel has to end it after SIGKILL.
	killGrace = 5 * time.Second
)

// process is a program that was started here. Unless it is detached it cannot
// outlive the program that started it: the kernel kills it then, however that
// one ended.
type process struct {
	name string
	log  string
	proc *os.Process
	done chan struct{} // closed when it has ended and is reaped
	err  error         // what Wait said; read after done
}

// command returns name with args, to be run inside the network namespace at
// netns, or in the caller's where that is empty. nsenter becomes the program
// by exec, so the pid is the program's own. The environment is empty but for
// PATH: a proxy of the person at the keyboard has no business here.
func command(netns, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	if netns != "" {
		cmd = exec.Command("nsenter", append([]string{"--net=" + netns, "--", path}, args...)...)
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	return cmd
}

// startProcess starts cmd with its output in dir/name.log.
func startProcess(name, dir string, detach bool, cmd *exec.Cmd) (*process, error) {
	path := filepath.Join(dir, name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, dir
	// A session of its own keeps a ^C on the terminal from reaching it before
	// we stop things in their order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if !detach {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	p := &process{name: name, log: path, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel ties Pdeathsig to the thread that forked, so that thread
		// must live as long as the process does.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p.proc = cmd.Process
	return p, nil
}

// ended returns nil while the process runs, and an error with the end of its
// log when it does not.
func (p *process) ended() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	said, err := os.ReadFile(p.log)
	if err != nil {
		said = []byte(err.Error())
	}
	return fmt.Errorf("running %s: it ended (%v); the end of %q: %s", p.name, p.err, p.log, tail(string(said), 2000))
}

// stop ends the process, softly at first, and returns when it is gone.
func (p *process) stop() error {
	if p.signal(syscall.SIGTERM, stopGrace) == nil {
		return nil
	}
	return p.signal(syscall.SIGKILL, killGrace)
}

// signal sends sig and waits until the process is gone.
func (p *process) signal(sig syscall.Signal, grace time.Duration) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := p.proc.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s (pid %d): %w", sig, p.name, p.proc.Pid, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(grace):
		return fmt.Errorf("waiting for %s (pid %d) to end after %s: still running after %s", p.name, p.proc.Pid, sig, grace)
	}
}
