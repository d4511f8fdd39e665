package drift

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

func TestDiff(t *testing.T) {
	dropIn, env := runtimes.DropInPath(unit), runtimes.EnvPath(unit)
	later := func(names ...string) OtherFile {
		o := OtherFile{Path: "/etc/sysconfig/proxy", Mode: 0o644, Names: names, Wins: true}
		for _, n := range names {
			o.Vars = append(o.Vars, secret(n, "other", "other"))
		}
		return o
	}
	tests := map[string]struct {
		change  func(d *Desired, o *Observed)
		want    string
		refused string
		says    string
	}{
		"in sync": {
			func(*Desired, *Observed) {},
			"[] true []", "", "",
		},
		"first install": {
			func(_ *Desired, o *Observed) {
				for p := range o.Files.Ours {
					o.Files.Ours[p] = FileState{}
				}
				o.Loaded.DropInPaths, o.Loaded.EnvironmentFiles, o.Loaded.UnsetEnvironment = nil, nil, nil
				o.Process.Environ = nil
			},
			"[write " + caFile + "; write " + env + "; write " + dropIn + "; reload; restart] false [FilesDrifted FilesDrifted FilesDrifted RestartNeeded]", "", "",
		},
		"C13: mode of the environment file": {
			func(_ *Desired, o *Observed) { edit(o, env, func(f *FileState) { f.Mode = 0o644 }) },
			"[write " + env + "] false [FilesDrifted]", "", "its mode is 0644 instead of 0600",
		},
		"environment file edited, process still right: nothing restarts": {
			func(_ *Desired, o *Observed) {
				edit(o, env, func(f *FileState) { f.Content = []byte(runtimes.HeaderMark + "\n") })
			},
			"[write " + env + "] false [FilesDrifted]", "", "its content differs",
		},
		"drop-in removed, process still right: reload, no restart": {
			func(_ *Desired, o *Observed) { o.Files.Ours[dropIn] = FileState{} },
			"[write " + dropIn + "; reload] false [FilesDrifted]", "", "it is missing",
		},
		"C12: our file replaced by a link": {
			func(_ *Desired, o *Observed) {
				o.Files.Ours[dropIn] = FileState{Exists: true, Mode: fs.ModeSymlink | 0o777}
			},
			"[] false [FilesDrifted]", dropIn, "move it away",
		},
		"C12: a file where the directory belongs": {
			func(_ *Desired, o *Observed) { o.Files.Ours[dropIn] = FileState{Blocked: true} },
			"[] false [FilesDrifted]", dropIn, "a file stands where a directory",
		},
		"somebody else's file at our path": {
			func(_ *Desired, o *Observed) {
				edit(o, dropIn, func(f *FileState) { f.Owned, f.Content = false, []byte("theirs") })
			},
			"[] false [FilesDrifted]", dropIn, "somebody else's",
		},
		"a file without header but with the very bytes": {
			func(_ *Desired, o *Observed) { edit(o, caFile, func(f *FileState) { f.Owned = false }) },
			"[] true []", "", "",
		},
		"systemd says that it must reload": {
			func(_ *Desired, o *Observed) { o.Loaded.NeedDaemonReload = true },
			"[reload] false [ReloadNeeded]", "", "",
		},
		"systemd has not read the drop-in though it sees no change": {
			func(_ *Desired, o *Observed) { o.Loaded.DropInPaths = nil },
			"[reload] false [ReloadNeeded]", "", "",
		},
		"systemd has an older drop-in": {
			func(_ *Desired, o *Observed) { o.Loaded.UnsetEnvironment = []string{"HTTP_PROXY"} },
			"[reload] false [ReloadNeeded]", "", "UnsetEnvironment=",
		},
		"systemd has a drop-in without the environment file": {
			func(_ *Desired, o *Observed) { o.Loaded.EnvironmentFiles = []string{env} },
			"[reload] false [ReloadNeeded]", "", "EnvironmentFile=",
		},
		"C28: file correct, daemon from before": {
			func(_ *Desired, o *Observed) { o.Process.Environ = nil },
			"[restart] false [RestartNeeded]", "", "HTTPS_PROXY is missing, NO_PROXY is missing",
		},
		"C28: one byte of a value": {
			func(_ *Desired, o *Observed) { setVar(o, "NO_PROXY", noProxy+",x") },
			"[restart] false [RestartNeeded]", "", "NO_PROXY differs",
		},
		"C07: a variable that the profile leaves unset is inherited": {
			func(_ *Desired, o *Observed) { setVar(o, "http_proxy", "http://old") },
			"[restart] false [RestartNeeded]", "", "http_proxy should not be set",
		},
		"an empty value is not an unset one": {
			func(_ *Desired, o *Observed) { setVar(o, "HTTP_PROXY", "") },
			"[restart] false [RestartNeeded]", "", "HTTP_PROXY should not be set",
		},
		"C29: stopped unit with wrong files": {
			func(_ *Desired, o *Observed) {
				o.Files.Ours[env] = FileState{}
				o.Loaded.ActiveState, o.Process = "inactive", ProcessLayer{Running: runtimes.False}
			},
			"[write " + env + "] false [FilesDrifted InSync]", "", "",
		},
		"C29: stopped unit with right files": {
			func(_ *Desired, o *Observed) {
				o.Loaded.ActiveState, o.Process = "inactive", ProcessLayer{Running: runtimes.False}
			},
			"[] true [InSync]", "", "the unit is stopped and stays so",
		},
		"starting unit": {
			func(_ *Desired, o *Observed) {
				o.Loaded.ActiveState, o.Loaded.SubState, o.Process = "activating", "start", ProcessLayer{}
			},
			"[] unknown [Unreadable]", "", "activating (start)",
		},
		"C09: a later environment file wins": {
			func(_ *Desired, o *Observed) {
				o.Files.Others = []OtherFile{later("NO_PROXY")}
				setVar(o, "NO_PROXY", "other")
			},
			"[] false [Overridden]", "", "it sets NO_PROXY after Proxyward's file",
		},
		"C09: a later environment file will win at the next start": {
			func(_ *Desired, o *Observed) { o.Files.Others = []OtherFile{later("NO_PROXY")} },
			"[] false [Overridden]", "", "",
		},
		"C09: what it does not decide is still mended": {
			func(_ *Desired, o *Observed) {
				o.Files.Others = []OtherFile{later("NO_PROXY")}
				setVar(o, "NO_PROXY", "other")
				setVar(o, "HTTPS_PROXY", "old")
			},
			"[restart] false [Overridden RestartNeeded]", "", "",
		},
		"a later environment file that sets what stays unset": {
			func(_ *Desired, o *Observed) { o.Files.Others = []OtherFile{later("HTTP_PROXY")} },
			"[] true [Shadowed]", "", "",
		},
		"a later environment file with our own value": {
			func(_ *Desired, o *Observed) {
				o.Files.Others = []OtherFile{{Path: "/x", Names: []string{"NO_PROXY"}, Vars: []proxyenv.Var{secret("NO_PROXY", noProxy, noProxy)}, Wins: true}}
			},
			"[] true [Shadowed]", "", "",
		},
		"somebody unsets ours": {
			func(_ *Desired, o *Observed) {
				o.Files.Others = []OtherFile{{Path: "/x", Names: []string{"NO_PROXY"}, Wins: true, Problem: "it unsets what Proxyward sets"}}
				o.Process.Environ = slices.DeleteFunc(o.Process.Environ, func(v proxyenv.Var) bool { return v.Name == "NO_PROXY" })
			},
			"[] false [Overridden]", "", "it unsets",
		},
		"somebody's file keeps ours from being used": {
			func(_ *Desired, o *Observed) {
				o.Files.Others = []OtherFile{{Path: "/x", Wins: true, Problem: "same name"}}
				o.Loaded.DropInPaths, o.Process.Environ = nil, nil
			},
			"[] false [Overridden]", "", "same name",
		},
		"C08: an earlier drop-in loses": {
			func(_ *Desired, o *Observed) {
				o.Files.Others = []OtherFile{{Path: "/x", Mode: 0o644, Names: []string{"HTTPS_PROXY"}, Vars: []proxyenv.Var{secret("HTTPS_PROXY", "http://other", "http://other")}}}
			},
			"[] true [Shadowed]", "", "loses to Proxyward's file",
		},
		"C68: hand-made drop-in with a password": {
			func(_ *Desired, o *Observed) {
				o.Files.Others = []OtherFile{{Path: "/x", Mode: 0o644, Names: []string{"HTTPS_PROXY"}, Vars: []proxyenv.Var{secret("HTTPS_PROXY", proxyURL, "http://***@proxy")}}}
			},
			"[] true [Shadowed]", "", "it holds a password and is readable by others (mode 0644)",
		},
		"C69: a foreign SSL_CERT_FILE is kept": {
			func(_ *Desired, o *Observed) {
				o.Files.Others = []OtherFile{{Path: "/x", Names: []string{"SSL_CERT_FILE"}, Vars: []proxyenv.Var{secret("SSL_CERT_FILE", "/y", "/y")}}}
				setVar(o, "SSL_CERT_FILE", "/y")
			},
			"[] true [Foreign]", "", "it sets SSL_CERT_FILE, which is kept",
		},
		"C10: daemon.json": {
			func(_ *Desired, o *Observed) {
				o.Above.Overrides = []runtimes.Override{{File: "/etc/docker/daemon.json", Key: "proxies.http-proxy", Variable: "HTTP_PROXY", Value: "http://***@x"}}
			},
			"[] false [Overridden]", "", "proxies.http-proxy sets HTTP_PROXY",
		},
		"files cannot be read": {
			func(_ *Desired, o *Observed) { o.Files = FileLayer{Err: errors.New("reading: input/output error")} },
			"[] unknown [Unreadable]", "", "input/output error",
		},
		"systemd does not answer": {
			func(_ *Desired, o *Observed) {
				o.Loaded, o.Process = LoadedLayer{Err: errors.New("no answer")}, ProcessLayer{}
			},
			"[] unknown [Unreadable]", "", "no answer",
		},
		"process cannot be read": {
			func(_ *Desired, o *Observed) {
				o.Process = ProcessLayer{Running: runtimes.True, Err: errors.New("permission denied")}
			},
			"[] unknown [Unreadable]", "", "permission denied",
		},
		"Docker does not answer": {
			func(_ *Desired, o *Observed) { o.Above.Err = errors.New("no answer") },
			"[] unknown [Unreadable]", "", "",
		},
		"drift is known although a layer is not": {
			func(_ *Desired, o *Observed) {
				o.Above.Err = errors.New("no answer")
				o.Process.Environ = nil
			},
			"[restart] false [RestartNeeded Unreadable]", "", "",
		},
		"unit that systemd does not know": {
			func(_ *Desired, o *Observed) {
				o.Loaded, o.Process = LoadedLayer{LoadState: "not-found", ActiveState: "inactive"}, ProcessLayer{Running: runtimes.False}
			},
			"[] unknown [Unreadable]", "", "not-found",
		},
		"plain tree with right files": {
			func(_ *Desired, o *Observed) { o.Loaded, o.Process = LoadedLayer{Absent: true}, ProcessLayer{} },
			"[] unknown [Unreadable]", "", "there is no systemd here",
		},
		"plain tree without our drop-in: nobody is there to reload it": {
			func(_ *Desired, o *Observed) {
				o.Loaded, o.Process = LoadedLayer{Absent: true}, ProcessLayer{}
				o.Files.Ours[dropIn] = FileState{}
			},
			"[write " + dropIn + "] false [FilesDrifted]", "", "",
		},
		"plain tree with wrong files": {
			func(_ *Desired, o *Observed) {
				o.Loaded, o.Process = LoadedLayer{Absent: true}, ProcessLayer{}
				o.Files.Ours[env] = FileState{}
			},
			"[write " + env + "] false [FilesDrifted]", "", "",
		},
		"a daemon that must not be restarted": {
			func(d *Desired, o *Observed) {
				d.Runtime.Restart.Refuse = "another version would wipe"
				o.Process.Environ = nil
			},
			"[restart] false [RestartNeeded]", "another version would wipe", "",
		},
		"a daemon that must not be restarted and need not": {
			func(d *Desired, _ *Observed) { d.Runtime.Restart.Refuse = "another version would wipe" },
			"[] true []", "", "",
		},
		"C14: removal": {
			func(d *Desired, _ *Observed) { *d = absent() },
			"[remove " + dropIn + "; remove " + caFile + "; remove " + env + "; reload; restart] false [FilesDrifted FilesDrifted FilesDrifted RestartNeeded]", "", "",
		},
		"C14: removal of a stopped unit's files": {
			func(d *Desired, o *Observed) {
				*d = absent()
				o.Loaded.ActiveState, o.Process = "inactive", ProcessLayer{Running: runtimes.False}
			},
			"[remove " + dropIn + "; remove " + caFile + "; remove " + env + "; reload] false [FilesDrifted FilesDrifted FilesDrifted InSync]", "", "",
		},
		"C14: removal leaves what is not ours": {
			func(d *Desired, o *Observed) {
				*d = absent()
				for p := range o.Files.Ours {
					edit(o, p, func(f *FileState) { f.Owned = false })
				}
				o.Process.Environ = []proxyenv.Var{secret("HTTPS_PROXY", "http://theirs", "")}
			},
			"[] true [Foreign Foreign Foreign]", "", "left alone",
		},
		"C14: files removed, systemd and process are not": {
			func(d *Desired, o *Observed) {
				*d = absent()
				d.Environment.Vars = theVars()
				for p := range o.Files.Ours {
					o.Files.Ours[p] = FileState{}
				}
			},
			"[reload; restart] false [ReloadNeeded RestartNeeded]", "", "",
		},
		"C14: clean": {
			func(d *Desired, o *Observed) {
				*d = absent()
				for p := range o.Files.Ours {
					o.Files.Ours[p] = FileState{}
				}
				o.Loaded.DropInPaths, o.Process.Environ = nil, nil
			},
			"[] true []", "", "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := theDesired()
			o := inSync(d)
			test.change(&d, &o)
			plan := Diff([]Desired{d}, []Observed{o}, "v1")
			if got := summary(plan); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if test.refused == "" != (plan.Refused == "") || !strings.Contains(plan.Refused, test.refused) {
				t.Errorf("refused is %q, want it to say %q", plan.Refused, test.refused)
			}
			if text := fmt.Sprintf("%+v", plan.Units); !strings.Contains(text, test.says) {
				t.Errorf("%q is not said in %s", test.says, text)
			}
			if text := fmt.Sprintf("%+v %s", plan.Units, plan.Refused); strings.Contains(text, password) {
				t.Errorf("a verdict gives the password away: %s", text)
			}
		})
	}
}
