package drift

import (
	"testing"
	"time"

	"github.com/proxyward/proxyward/runtimes"
)

func TestHashCoversWhatIsPlanned(t *testing.T) {
	base := func() (Desired, Observed) {
		d := theDesired()
		o := inSync(d)
		o.Process.Environ = nil
		return d, o
	}
	hashOf := func(version string, change func(d *Desired, o *Observed)) string {
		d, o := base()
		change(&d, &o)
		return Diff([]Desired{d}, []Observed{o}, version).Hash
	}
	want := hashOf("v1", func(*Desired, *Observed) {})

	for name, change := range map[string]func(d *Desired, o *Observed){
		"times, process and invocation": func(_ *Desired, o *Observed) {
			o.Loaded.InvocationID, o.Loaded.ActiveEnterTime, o.Loaded.MainPID = "bb", time.Now(), 7
			o.Process.PID, o.Process.Started = 7, time.Now()
		},
		"the secret itself": func(d *Desired, o *Observed) {
			d.Files[1].Content = []byte("another password")
			edit(o, envPath(unit), func(f *FileState) { f.Content = d.Files[1].Content })
		},
		"why an action is needed": func(_ *Desired, o *Observed) { setVar(o, "NO_PROXY", "x") },
		"other people's files":    func(_ *Desired, o *Observed) { o.Files.Others = []OtherFile{{Path: "/x", Names: []string{"NO_PROXY"}}} },
	} {
		if got := hashOf("v1", change); got != want {
			t.Errorf("the hash covers %s", name)
		}
	}
	if got := hashOf("v2", func(*Desired, *Observed) {}); got == want {
		t.Error("the hash does not cover the credentials version")
	}
	for name, change := range map[string]func(d *Desired, o *Observed){
		"content of a file": func(d *Desired, _ *Observed) { d.Files[2].Masked = []byte("x") },
		"mode of a file":    func(d *Desired, _ *Observed) { d.Files[1].Mode = 0o640 },
		"path of a file":    func(d *Desired, _ *Observed) { d.Files[0].Path += "x" },
		"actions":           func(_ *Desired, o *Observed) { o.Loaded.NeedDaemonReload = true },
	} {
		if got := hashOf("v1", change); got == want {
			t.Errorf("the hash does not cover the %s", name)
		}
	}
}

func TestShownHidesSecretFilesWithoutMaskedForm(t *testing.T) {
	if got := shown(runtimes.File{Mode: 0o600, Content: []byte(password)}); len(got) != 0 {
		t.Errorf("a secret file shows %q", got)
	}
	if got := shown(runtimes.File{Mode: 0o644, Content: []byte("plain")}); string(got) != "plain" {
		t.Errorf("a plain file shows %q", got)
	}
}
