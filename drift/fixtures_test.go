package drift

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

const (
	unit     = "containerd.service"
	password = "plant3d-secret"
	proxyURL = "http://svc:" + password + "@proxy.corp.example:3128"
	noProxy  = "localhost,.svc"
	caFile   = runtimes.CADir + "/abc/ca.crt"
)

func secret(name, value, masked string) proxyenv.Var {
	return proxyenv.Var{Name: name, Value: proxyenv.NewSecret(value, masked)}
}

// theVars are the six variables of a profile whose HTTP proxy is unset, and a CA.
func theVars() []proxyenv.Var {
	const masked = "http://***@proxy.corp.example:3128"
	return []proxyenv.Var{
		secret("HTTPS_PROXY", proxyURL, masked),
		secret("NO_PROXY", noProxy, noProxy),
		secret("SSL_CERT_DIR", "/etc/ssl/certs:"+runtimes.CADir+"/abc", "/etc/ssl/certs:"+runtimes.CADir+"/abc"),
		secret("https_proxy", proxyURL, masked),
		secret("no_proxy", noProxy, noProxy),
	}
}

func theDesired() Desired {
	dropIn := []byte(runtimes.HeaderMark + "\n[Service]\nEnvironmentFile=-" + runtimes.EnvPath(unit) + "\nUnsetEnvironment=HTTP_PROXY http_proxy\n")
	ca := []byte(runtimes.HeaderMark + "\nthe CA\n")
	return Desired{
		Desired: runtimes.Desired{
			Target: v1alpha1.TargetContainerd,
			Unit:   unit,
			Files: []runtimes.File{
				{Path: caFile, Mode: 0o644, Content: ca, Masked: ca},
				{
					Path: runtimes.EnvPath(unit), Mode: 0o600,
					Content: []byte(runtimes.HeaderMark + "\nHTTPS_PROXY=" + proxyURL + "\n"),
					Masked:  []byte(runtimes.HeaderMark + "\nHTTPS_PROXY=http://***@proxy.corp.example:3128\n"),
				},
				{Path: runtimes.DropInPath(unit), Mode: 0o644, Content: dropIn, Masked: dropIn},
			},
		},
		Environment: proxyenv.Environment{Vars: theVars(), Unset: []string{"HTTP_PROXY", "http_proxy"}},
	}
}

// inSync is what a host looks like on which all is done.
func inSync(d Desired) Observed {
	ours := map[string]FileState{}
	for _, f := range d.Files {
		ours[f.Path] = FileState{Exists: true, Regular: true, Owned: true, Mode: f.Mode, Content: f.Content}
	}
	return Observed{
		Unit:  d.Unit,
		Files: FileLayer{Ours: ours},
		Loaded: LoadedLayer{
			LoadState: "loaded", ActiveState: "active", SubState: "running",
			DropInPaths:      []string{runtimes.DropInPath(d.Unit)},
			EnvironmentFiles: []string{"-" + runtimes.EnvPath(d.Unit)},
			UnsetEnvironment: []string{"HTTP_PROXY", "http_proxy"},
			MainPID:          100, InvocationID: "aa",
		},
		Process: ProcessLayer{PID: 100, Running: runtimes.True, Environ: theVars()},
	}
}

func edit(o *Observed, path string, change func(*FileState)) {
	state := o.Files.Ours[path]
	change(&state)
	o.Files.Ours[path] = state
}

func setVar(o *Observed, name, value string) {
	o.Process.Environ = slices.DeleteFunc(slices.Clone(o.Process.Environ), func(v proxyenv.Var) bool { return v.Name == name })
	o.Process.Environ = append(o.Process.Environ, secret(name, value, ""))
}

// summary is a plan in short: its actions, and its only unit's verdict.
func summary(p Plan) string {
	var parts []string
	for _, a := range p.Actions {
		text := string(a.Kind)
		if a.File.Path != "" {
			text += " " + a.File.Path
		}
		parts = append(parts, text)
	}
	reasons := []string{}
	for _, f := range p.Units[0].Findings {
		reasons = append(reasons, f.Reason)
	}
	return fmt.Sprintf("[%s] %s %v", strings.Join(parts, "; "), p.Units[0].InSync, reasons)
}

func absent() Desired {
	return Desired{Desired: runtimes.Desired{Target: v1alpha1.TargetContainerd, Unit: unit}, Absent: true}
}
