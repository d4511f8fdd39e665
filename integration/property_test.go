//go:build linux

package integration

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/integration/lab"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

const (
	propertyUnit = "property.service"
	// propertyProfiles times the six variables is what one process carries.
	propertyProfiles = 120
)

// TestAnyProfileReachesTheProcessUnchanged renders generated profiles and credentials, lets a real
// systemd load all the drop-ins for one unit, and compares every variable of the process. A prefix
// for each profile keeps their variables apart.
func TestAnyProfileReachesTheProcessUnchanged(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SEED=%q: %v", text, err)
		}
	}
	t.Logf("SEED=%d repeats this run", seed)
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	for _, generation := range lab.GenerationsUnderTest(t) {
		t.Run(string(generation), func(t *testing.T) {
			n := lab.Start(t, lab.Config{Nodes: []lab.NodeSpec{{Name: "n1", Generation: generation}}}).Node("n1")
			write := func(path string, content []byte, mode os.FileMode) {
				t.Helper()
				if err := n.WriteFile(t.Context(), path, content, mode); err != nil {
					t.Fatal(err)
				}
			}
			want := map[string]string{}
			for i := range propertyProfiles {
				credentials := g.credentials()
				env := g.environment(t, credentials)
				prefix := fmt.Sprintf("P%d_", i)
				desired, err := runtimes.Render(runtimes.RenderInput{
					Profile: "generated", Revision: "generated-1", Target: v1alpha1.TargetContainerd,
					Unit: fmt.Sprintf("property-%d.service", i), Prefix: prefix, Environment: env,
				})
				if err != nil {
					t.Fatalf("profile %d: %v", i, err)
				}
				for _, f := range desired.Files {
					at := f.Path
					if path.Base(at) == runtimes.DropInName {
						at = fmt.Sprintf("%s/%s.d/zz-%d.conf", runtimes.UnitDir, propertyUnit, i)
					}
					write(at, f.Content, f.Mode)
				}
				for _, v := range runtimes.Scoped(env, prefix).Vars {
					want[v.Name] = v.Value.Reveal()
				}
				checkDecodes(t, env, credentials)
			}
			write("/etc/systemd/system/"+propertyUnit, []byte("[Service]\n# Started means executed: before that the process is still systemd's own.\nType=exec\nExecStart=/bin/sleep infinity\n"), 0o644)
			for _, args := range [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "start", propertyUnit}} {
				if _, err := n.Run(t.Context(), args...); err != nil {
					t.Fatal(err)
				}
			}
			got, err := n.Environ(t.Context(), propertyUnit)
			if err != nil {
				t.Fatal(err)
			}
			differ := 0
			for name, value := range want {
				if found, ok := got[name]; !ok || found != value {
					differ++
					t.Errorf("%s is %q in the process (there: %t), rendered from %q", name, found, ok, value)
				}
				if differ > 5 {
					t.Fatal("and more")
				}
			}
			t.Logf("%d generated values are in the process, byte for byte", len(want))
			if len(want) < 6*propertyProfiles {
				t.Errorf("only %d values were generated", len(want))
			}
		})
	}
}

// checkDecodes holds that what is in the URL decodes to the credentials as they were given.
func checkDecodes(t *testing.T, env proxyenv.Environment, c *proxyenv.Credentials) {
	t.Helper()
	for _, v := range env.Vars {
		if v.Name != "HTTPS_PROXY" {
			continue
		}
		u, err := url.Parse(v.Value.Reveal())
		if err != nil {
			t.Fatalf("HTTPS_PROXY does not parse: %v", err)
		}
		if password, _ := u.User.Password(); u.User.Username() != c.Username || password != c.Password.Reveal() {
			t.Errorf("decoded user %q and password %q, given were %q and %q", u.User.Username(), password, c.Username, c.Password.Reveal())
		}
		return
	}
	t.Error("there is no HTTPS_PROXY")
}

// generator makes profiles out of what people type and what they should not.
type generator struct{ *rand.Rand }

func (g generator) pick(from string) string {
	runes := []rune(from)
	return string(runes[g.IntN(len(runes))])
}

func (g generator) text(from string, least, most int) string {
	var b strings.Builder
	for range least + g.IntN(most-least+1) {
		b.WriteString(g.pick(from))
	}
	return b.String()
}

// credentials of any printable text, with a weight on what quoting and encoding stumble over.
func (g generator) credentials() *proxyenv.Credentials {
	const special = "\"'\\$`%@:/#?&=+ ;!*()[]{}<>|~^,éßñ漢🔑\u00a0abcXYZ019"
	return proxyenv.NewCredentials(g.text(special, 1, 24), g.text(special, 1, 64))
}

func (g generator) label() string {
	const inner = "abcdefghijklmnopqrstuvwxyz0123456789"
	return g.text(inner, 1, 6) + g.text(inner+"-", 0, 8) + g.text(inner, 1, 3)
}

func (g generator) host() string { return "h" + g.label() + "." + g.label() + ".example" }

func (g generator) entry() string {
	switch g.IntN(7) {
	case 0:
		return g.host()
	case 1:
		return "." + g.host()
	case 2:
		return fmt.Sprintf("%s:%d", g.host(), 1+g.IntN(65535))
	case 3:
		return fmt.Sprintf("10.%d.%d.%d", g.IntN(256), g.IntN(256), g.IntN(256))
	case 4:
		return fmt.Sprintf("172.%d.0.0/16", g.IntN(256))
	case 5:
		return fmt.Sprintf("fd%02x:%x::/32", g.IntN(256), 1+g.IntN(65535))
	default:
		return fmt.Sprintf("fd00::%x", 1+g.IntN(65535))
	}
}

func (g generator) environment(t *testing.T, c *proxyenv.Credentials) proxyenv.Environment {
	t.Helper()
	profile := &v1alpha1.ProxyProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "generated"},
		Spec: v1alpha1.ProxyProfileSpec{
			Proxy: v1alpha1.Proxy{
				HTTP:                  fmt.Sprintf("http://%s:%d", g.host(), 1+g.IntN(65535)),
				HTTPS:                 fmt.Sprintf("http://%s:%d", g.host(), 1+g.IntN(65535)),
				CredentialsSecretName: "generated",
			},
			Cluster:    v1alpha1.ClusterFacts{ServiceCIDRs: []string{"10.96.0.0/16"}},
			Registries: v1alpha1.Registries{Internal: []string{g.host() + ":5000"}},
		},
	}
	seen := map[string]bool{}
	for range g.IntN(40) {
		e := g.entry()
		if seen[e] {
			continue
		}
		seen[e] = true
		profile.Spec.NoProxy.Entries = append(profile.Spec.NoProxy.Entries, v1alpha1.NoProxyRequest{
			Value: e, Reason: g.text("because \"of\" %h $HOME \\ # ; é漢'`", 0, 40) + "x",
		})
	}
	revision, _, err := proxyenv.Resolve(proxyenv.Input{Profile: profile})
	if err != nil {
		t.Fatalf("resolving a generated profile: %v", err)
	}
	env, err := proxyenv.ForNode(proxyenv.NodeInput{Revision: revision, Credentials: c})
	if err != nil {
		t.Fatalf("making the environment of a generated profile: %v", err)
	}
	return env
}
