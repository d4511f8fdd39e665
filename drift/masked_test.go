package drift

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/proxyward/proxyward/runtimes"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got\n%s\nwant\n%s", file, got, want)
	}
}

func TestMaskedDiff(t *testing.T) {
	dropIn, env := dropInPath(unit), envPath(unit)
	tests := map[string]func(d *Desired, o *Observed){
		"install": func(_ *Desired, o *Observed) {
			for p := range o.Files.Ours {
				o.Files.Ours[p] = FileState{}
			}
		},
		"edited": func(_ *Desired, o *Observed) {
			edit(o, dropIn, func(f *FileState) {
				f.Content = []byte(strings.Replace(string(f.Content), "http_proxy", "http_proxy \x1b[31m\xff", 1))
			})
			edit(o, env, func(f *FileState) {
				f.Content = []byte(headerMark + "\nHTTPS_PROXY=http://old:" + password + "@old.example:3128\n")
			})
		},
		"password": func(_ *Desired, o *Observed) {
			edit(o, env, func(f *FileState) { f.Content = []byte(strings.Replace(string(f.Content), password, "old", 1)) })
		},
		"mode":   func(_ *Desired, o *Observed) { edit(o, env, func(f *FileState) { f.Mode = 0o644 }) },
		"remove": func(d *Desired, _ *Observed) { *d = absent() },
		"insync": func(*Desired, *Observed) {},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			d := theDesired()
			o := inSync(d)
			change(&d, &o)
			observed := []Observed{o}
			got := MaskedDiff(Diff([]Desired{d}, observed, "v1"), observed)
			if strings.Contains(got, password) {
				t.Errorf("C54: the diff gives the password away")
			}
			golden(t, "diff-"+name+".golden", got)
		})
	}
}

func TestMaskedDiffIsCut(t *testing.T) {
	d := theDesired()
	d.Files[2].Content = []byte(headerMark + "\n" + strings.Repeat("# ü a comment of some length\n", 1000))
	d.Files[2].Masked = d.Files[2].Content
	o := inSync(d)
	o.Files.Ours[d.Files[2].Path] = FileState{}
	observed := []Observed{o}
	got := MaskedDiff(Diff([]Desired{d}, observed, "v1"), observed)
	if len(got) > MaxDiff || !utf8.ValidString(got) {
		t.Errorf("the diff has %d bytes, valid UTF-8 = %v", len(got), utf8.ValidString(got))
	}
	if !strings.HasSuffix(got, " bytes more)\n") || !strings.Contains(got[len(got)-60:], "(cut: ") {
		t.Errorf("the end does not say that it was cut: %q", got[len(got)-60:])
	}
}

func TestMaskedDiffOfSecretFileWithoutMaskedForm(t *testing.T) {
	d := theDesired()
	d.Files[1].Masked = nil
	o := inSync(d)
	o.Files.Ours[d.Files[1].Path] = FileState{}
	observed := []Observed{o}
	got := MaskedDiff(Diff([]Desired{d}, observed, "v1"), observed)
	if strings.Contains(got, password) || !strings.Contains(got, "(the content is masked)") {
		t.Errorf("the diff is %q", got)
	}
}

func TestMaskedDiffOfEmptyFile(t *testing.T) {
	got := fileDiff(Action{Kind: ActionWrite, File: runtimes.File{Path: "/x", Mode: 0o644}}, FileState{})
	if !strings.Contains(got, "(an empty file)") {
		t.Errorf("the diff is %q", got)
	}
}
