package proxyenv

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// childEnv makes the test binary the child program of TestExplainEqualsARealGoProgram.
const childEnv = "PROXYENV_TEST_CHILD"

func TestMain(m *testing.M) {
	if direct := os.Getenv(childEnv); direct != "" {
		requestAll(direct)
		return
	}
	os.Exit(m.Run())
}

// requestAll asks for each URL on standard input with net/http's own proxy function and says when
// it is done. Whatever is not the proxy is dialled at one listener, because the hosts do not exist.
func requestAll(direct string) {
	proxy := os.Getenv(childEnv + "_PROXY")
	transport := &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			switch addr {
			case proxy:
			case "http:80": // what Go takes for the proxy in a URL that it cannot parse
				addr = proxy
			default:
				addr = direct
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
	}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if resp, err := client.Get(in.Text()); err == nil {
			resp.Body.Close()
		}
		fmt.Println("done")
	}
}

// counter counts the connections that a listener took and answers each with a refusal.
func counter(t *testing.T) (address string, count *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	count = &atomic.Int64{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			go func() {
				defer c.Close()
				_, _ = c.Read(make([]byte, 4096))
				_, _ = io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			}()
		}
	}()
	return l.Addr().String(), count
}

// TestExplainEqualsARealGoProgram has a child process make the requests of a generated table over
// net/http, and sees at two listeners which way each went.
func TestExplainEqualsARealGoProgram(t *testing.T) {
	direct, directCount := counter(t)
	proxy, proxyCount := counter(t)
	envs, targets := generated(25, 40)
	both := [2]int{}
	for _, env := range envs {
		for i, v := range env.Vars {
			_, port, _ := net.SplitHostPort(proxy)
			env.Vars[i].Value = PlainSecret(strings.ReplaceAll(v.Value.Reveal(), "PORT", port))
		}
		m := NewMatcher(env)
		ask := startChild(t, env, direct, proxy)
		for _, target := range targets {
			d0, p0 := directCount.Load(), proxyCount.Load()
			ask(target)
			wentDirect, wentProxy := directCount.Load() > d0, proxyCount.Load() > p0
			if wentDirect == wentProxy {
				t.Fatalf("%s under %v: went direct %t and by proxy %t", target, env.Vars, wentDirect, wentProxy)
			}
			if got := m.Decide(target); got.Direct != wentDirect {
				t.Errorf("%s under %v: the program went direct: %t, explained: %+v", target, env.Vars, wentDirect, got)
			}
			if wentDirect {
				both[0]++
			} else {
				both[1]++
			}
		}
	}
	if both[0] < 100 || both[1] < 100 {
		t.Errorf("the table is one-sided: %d direct, %d by proxy", both[0], both[1])
	}
}

// startChild returns a function that has the child ask for one URL and waits until it has.
func startChild(t *testing.T, env Environment, direct, proxy string) func(string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = []string{childEnv + "=" + direct, childEnv + "_PROXY=" + proxy}
	for _, v := range env.Vars {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value.Reveal())
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the child: %v", err)
		}
	})
	answers := bufio.NewScanner(out)
	return func(target string) {
		if _, err := fmt.Fprintln(in, target); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() {
			t.Fatalf("the child ended at %s: %v", target, answers.Err())
		}
	}
}
