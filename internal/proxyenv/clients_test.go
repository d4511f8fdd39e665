package proxyenv

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// isolatedEnv tells the test binary that it runs in a network namespace of its own, in which there
// is nothing but a loopback: whatever a client sends direct fails at once and reaches nobody.
const isolatedEnv = "PROXYENV_TEST_ISOLATED"

// clientPrograms returns a command for each client that asks for the URLs it is given, one after the
// other, whatever becomes of each; and what to install when it is missing.
func clientPrograms() map[Client]struct {
	install string
	probe   []string
	command []string
} {
	type program = struct {
		install string
		probe   []string
		command []string
	}
	// Debian's own may be older than what the packages need.
	const node = "testdata/clients/node_modules/node/bin/node"
	return map[Client]program{
		ClientCurl: {"the Debian package curl", []string{"curl", "--version"},
			[]string{"sh", "-c", `for u; do curl -gsS -m 3 -o /dev/null "$u"; done; true`, "sh"}},
		ClientWget: {"the Debian package wget", []string{"wget", "--version"},
			[]string{"sh", "-c", `for u; do wget -q -T 3 -t 1 -O /dev/null "$u"; done; true`, "sh"}},
		ClientPython: {"the Debian package python3", []string{"python3", "--version"},
			[]string{"python3", "-c", "import sys,urllib.request\nfor u in sys.argv[1:]:\n  try: urllib.request.urlopen(u,timeout=3)\n  except Exception: pass"}},
		ClientRequests: {"the Debian package python3-requests", []string{"python3", "-c", "import requests"},
			[]string{"python3", "-c", "import sys,requests\nfor u in sys.argv[1:]:\n  try: requests.get(u,timeout=3)\n  except Exception: pass"}},
		ClientJava: {"the Debian package default-jdk-headless", []string{"java", "--list-modules"},
			[]string{"java", "testdata/clients/Get.java"}},
		ClientUndici: {"the packages of internal/proxyenv/testdata/clients (npm ci in that folder)", []string{node, "-e", "require('./testdata/clients/node_modules/undici')"},
			[]string{node, "testdata/clients/undici.cjs"}},
		ClientAxios: {"the packages of internal/proxyenv/testdata/clients (npm ci in that folder)", []string{node, "-e", "require('./testdata/clients/node_modules/axios')"},
			[]string{node, "testdata/clients/axios.cjs"}},
	}
}

// TestC76_RealClients has every client whose dialect says that it was checked make the requests of a
// table, and compares which of them reach a proxy with what Explain says.
func TestC76_RealClients(t *testing.T) {
	if os.Getenv(isolatedEnv) == "" {
		isolate(t)
		return
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("starting the loopback: %v: %s", err, out)
	}
	programs := clientPrograms()
	for _, d := range Dialects() {
		p, ok := programs[d.Client]
		if d.Client == ClientGo || d.Checked == "" {
			if ok {
				t.Errorf("%s is checked here and does not say so", d.Client)
			}
			continue
		}
		t.Run(string(d.Client), func(t *testing.T) {
			if !ok {
				t.Fatalf("%s says that it was checked (%s) and is not", d.Client, d.Checked)
			}
			if out, err := exec.Command(p.probe[0], p.probe[1:]...).CombinedOutput(); err != nil {
				missing(t, fmt.Sprintf("%s is not here (%v: %s); install %s", d.Client, err, out, p.install))
			}
			t.Parallel()
			proxy := startRecorder(t)
			lists := clientLists()
			if d.match == nil {
				lists = lists[:2] // it does not look at the environment at all
			}
			for _, list := range lists {
				compare(t, d, p.command, proxy, noProxyEnvironment(proxy.address, list), clientURLs())
			}
			for _, env := range caseEnvironments(proxy.address) {
				compare(t, d, p.command, proxy, env, []string{"http://one.corp.example/", "http://two.example/"})
			}
		})
	}
}

// missing skips a test for want of something, which a machine that must run all may not.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// isolate runs the calling test again in a network namespace of its own.
func isolate(t *testing.T) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), isolatedEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		missing(t, fmt.Sprintf("no network namespace can be made here: %v", err))
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// clientLists are the values of NO_PROXY that the clients are asked under.
func clientLists() []string {
	return []string{
		"corp.example", ".corp.example", "*.corp.example", "CORP.example", "corp.example:80", "one.corp.example:5000", ".corp.example:5000", "corp.example.",
		"127.9.0.0/16", "127.9.1.2", "127.9.1.2:5000", "9.1.2", "127.*", "::1", "[::1]", "[::1]:5000", "::/64",
		"other.example, corp.example", "other.example corp.example", "*", "other.example,*", "localhost", "http://corp.example", "corp.example/x", "example",
	}
}

func clientURLs() []string {
	var urls []string
	for _, host := range []string{"corp.example", "one.corp.example", "a.one.corp.example", "notcorp.example", "other.example", "127.9.1.2", "127.8.1.2", "[::1]", "localhost"} {
		urls = append(urls, "http://"+host+"/", "http://"+host+":5000/")
	}
	return urls
}

func noProxyEnvironment(proxy, list string) Environment {
	env := Environment{}
	for name, value := range map[string]string{"http_proxy": "http://" + proxy, "HTTP_PROXY": "http://" + proxy, "no_proxy": list, "NO_PROXY": list} {
		env.Vars = append(env.Vars, Var{Name: name, Value: PlainSecret(value)})
	}
	return env
}

// caseEnvironments tell apart which of the two cases a client reads.
func caseEnvironments(proxy string) []Environment {
	env := func(pairs ...string) Environment {
		e := Environment{}
		for i := 0; i < len(pairs); i += 2 {
			e.Vars = append(e.Vars, Var{Name: pairs[i], Value: PlainSecret(pairs[i+1])})
		}
		return e
	}
	url := "http://" + proxy
	return []Environment{
		env(), env("http_proxy", url), env("HTTP_PROXY", url),
		env("http_proxy", url, "NO_PROXY", "corp.example"), env("http_proxy", url, "no_proxy", "corp.example"),
		env("http_proxy", url, "no_proxy", "corp.example", "NO_PROXY", "two.example"),
	}
}

// compare asks for the URLs and holds what reached the proxy to what Explain says.
func compare(t *testing.T, d Dialect, command []string, proxy *recorder, env Environment, urls []string) {
	t.Helper()
	proxy.reset()
	cmd := exec.Command(command[0], append(append([]string{}, command[1:]...), urls...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8"}
	if root := os.Getenv("PYENV_ROOT"); root != "" {
		cmd.Env = append(cmd.Env, "PYENV_ROOT="+root)
	}
	for _, v := range env.Vars {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value.Reveal())
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", d.Client, err, out)
	}
	for _, u := range urls {
		got := Explain(env, u, d.Client)
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		if asked := proxy.asked(u); asked == got.Direct {
			t.Errorf("%s under %v asks the proxy for %s: %t; explained: %s", d.Title, env.Vars, u, asked, got.Why)
		}
	}
}

// recorder is a proxy that refuses everything and keeps what it was asked for.
type recorder struct {
	address string
	mu      sync.Mutex
	hosts   map[string]bool
}

func startRecorder(t *testing.T) *recorder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	r := &recorder{address: l.Addr().String(), hosts: map[string]bool{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(c)
		}
	}()
	return r
}

func (r *recorder) serve(c net.Conn) {
	defer c.Close()
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	r.mu.Lock()
	r.hosts[withPort(req.Host)] = true
	r.mu.Unlock()
	fmt.Fprint(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.hosts)
}

func (r *recorder) asked(url string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hosts[withPort(strings.Trim(strings.TrimPrefix(url, "http:"), "/"))]
}

// withPort adds http's port to a host that has none.
func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return host + ":80"
}
