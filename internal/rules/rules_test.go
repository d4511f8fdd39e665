// Package rules holds the repository to its own rules: which package may import which, a doc
// comment for every package, files that can be read in one sitting, nothing left for later.
package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module   = "github.com/proxyward/proxyward"
	maxLines = 400
)

// rule bounds the imports of the packages below one folder. The longest folder that fits decides.
type rule struct {
	folder string
	// may lists the folders of this module whose packages may be imported directly, besides the
	// package's own subfolders.
	may []string
	// never lists packages, with what is below them, that must not be linked in even indirectly.
	never []string
	// pure packages take values and return values: they must not import what reaches a clock, a
	// disk, a network or a log.
	pure bool
}

// impure are packages whose direct import breaks purity.
func impure() []string {
	return []string{"context", "log", "net/http", "os", "os/exec", "time"}
}

// The order of the folders is the direction of the imports: none may name one that comes later.
func rules() []rule {
	const (
		clientGo   = "k8s.io/client-go"
		controller = "sigs.k8s.io/controller-runtime"
		goSystemd  = "github.com/coreos/go-systemd"
		dbus       = "github.com/godbus/dbus"
	)
	kubernetes := []string{clientGo, controller, "k8s.io/kubectl"}
	leaf := append([]string{"k8s.io"}, kubernetes...)
	linked := append([]string{goSystemd, dbus, "os/exec", module + "/internal/hostfs", module + "/internal/systemd"}, kubernetes...)
	core := []string{"api", "internal/proxyenv", "internal/unitfile", "runtimes"}
	host := append([]string{"internal/hostfs", "internal/systemd", "drift"}, core...)
	node := append([]string{"agent/apply", "canary", "internal/desired", "internal/node", "internal/prober", "internal/profilefile"}, host...)
	return []rule{
		{folder: "api", never: append([]string{"k8s.io/api"}, kubernetes...)},
		{folder: "internal/hostfs", never: leaf},
		{folder: "internal/unitfile", never: append([]string{goSystemd + "/v22/dbus", dbus}, leaf...), pure: true},
		{folder: "internal/systemd", never: leaf},
		{folder: "internal/cli", may: []string{"api"}, never: kubernetes},
		{folder: "internal/proxyenv", may: []string{"api"}, never: linked, pure: true},
		{folder: "internal/profilefile", may: []string{"api", "internal/proxyenv"}, never: kubernetes},
		{folder: "runtimes", may: core[:3], never: linked, pure: true},
		{folder: "runtimes/runtimetest", may: append([]string{"internal/hostfs"}, core...), never: kubernetes},
		{folder: "canary", may: core, never: kubernetes},
		{folder: "drift", may: append([]string{"internal/hostfs", "internal/systemd"}, core...), never: kubernetes},
		{folder: "internal/desired", may: append([]string{"drift", "internal/profilefile"}, core...), never: kubernetes},
		{folder: "agent/apply", may: host, never: kubernetes},
		{folder: "internal/node", may: append([]string{"agent/apply"}, host...), never: kubernetes},
		{folder: "internal/prober", may: append([]string{"agent/apply", "canary", "internal/node"}, host...), never: kubernetes},
		{folder: "agent", may: node, never: []string{controller}},
		{folder: "bootstrap", may: node, never: append([]string{module + "/agent"}, kubernetes...)},
		{folder: "rollout", may: core, never: []string{module + "/agent", module + "/bootstrap", goSystemd, dbus, module + "/internal/hostfs"}},
		{folder: "cmd", may: []string{"api", "agent", "agent/apply", "bootstrap", "canary", "cmd", "drift", "internal", "rollout", "runtimes"}},
		{folder: "internal/secrettest", may: []string{"api", "internal/proxyenv"}, never: kubernetes},
		{folder: "internal/rules"},
	}
}

// listed is what `go list` says of one package.
type listed struct {
	ImportPath, Dir             string
	Name                        string
	GoFiles, TestGoFiles        []string
	XTestGoFiles, Imports, Deps []string
}

func TestImportsRunOneWay(t *testing.T) {
	all := rules()
	for _, p := range packages(t) {
		folder := strings.TrimPrefix(p.ImportPath, module+"/")
		r, known := ruleFor(all, folder)
		if !known {
			t.Errorf("%s has no rule: add its folder to rules(), in the place that its imports give it", p.ImportPath)
			continue
		}
		for _, violation := range r.violations(p) {
			t.Errorf("%s: %s", p.ImportPath, violation)
		}
	}
}

func TestRulesNameNothingLater(t *testing.T) {
	var seen []string
	for _, r := range rules() {
		for _, m := range r.may {
			if m != r.folder && r.folder != "cmd" && !slices.Contains(seen, m) {
				t.Errorf("%s may import %s, which comes later", r.folder, m)
			}
		}
		seen = append(seen, r.folder)
	}
}

// The check itself is checked: each of these must be found.
func TestViolationsAreFound(t *testing.T) {
	tests := map[string]listed{
		"runtimes": {
			ImportPath: module + "/runtimes",
			Imports:    []string{module + "/drift"},
		},
		"internal/proxyenv": {
			ImportPath: module + "/internal/proxyenv",
			Deps:       []string{"github.com/godbus/dbus/v5"},
		},
		"bootstrap": {
			ImportPath: module + "/bootstrap",
			Deps:       []string{"k8s.io/client-go/rest"},
		},
		"internal/unitfile": {
			ImportPath: module + "/internal/unitfile",
			Imports:    []string{"os"},
		},
		"agent/apply": {
			ImportPath: module + "/agent/apply",
			Imports:    []string{module + "/agent"},
		},
	}
	for folder, p := range tests {
		r, known := ruleFor(rules(), folder)
		if !known || len(r.violations(p)) != 1 {
			t.Errorf("%s: found %q", folder, r.violations(p))
		}
	}
}

func (r rule) violations(p listed) []string {
	var found []string
	for _, imported := range p.Imports {
		folder, ours := strings.CutPrefix(imported, module+"/")
		if r.pure && slices.Contains(impure(), imported) {
			found = append(found, fmt.Sprintf("imports %s, though %s is pure", imported, r.folder))
		}
		if !ours || within(folder, r.folder) && r.folder != "agent" {
			continue
		}
		if !slices.ContainsFunc(r.may, func(m string) bool { return folder == m || m != "agent" && within(folder, m) }) {
			found = append(found, fmt.Sprintf("imports %s, which %s must not", imported, r.folder))
		}
	}
	for _, dep := range p.Deps {
		for _, never := range r.never {
			// agent/apply is below agent but is not it.
			if never == module+"/agent" && within(dep, never+"/apply") {
				continue
			}
			if within(dep, never) {
				found = append(found, fmt.Sprintf("links %s, which %s must not", dep, r.folder))
			}
		}
	}
	return found
}

func ruleFor(all []rule, folder string) (rule, bool) {
	var best rule
	found := false
	for _, r := range all {
		if within(folder, r.folder) && len(r.folder) >= len(best.folder) {
			best, found = r, true
		}
	}
	return best, found
}

func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

func TestEveryPackageHasADocComment(t *testing.T) {
	for _, p := range packages(t) {
		files := p.GoFiles
		if len(files) == 0 {
			files = slices.Concat(p.TestGoFiles, p.XTestGoFiles)
		}
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			want = "Command " + filepath.Base(p.ImportPath) + " "
		}
		var docs []string
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if doc := packageDoc(f); doc != "" {
				docs = append(docs, doc)
			}
		}
		if len(docs) != 1 || !strings.HasPrefix(docs[0], want) {
			t.Errorf("%s: one file must have a comment that begins with %q; found %d comments", p.ImportPath, want, len(docs))
		}
	}
}

func packageDoc(f *ast.File) string {
	if f.Doc == nil {
		return ""
	}
	return f.Doc.Text()
}

func TestFilesCanBeReadInOneSitting(t *testing.T) {
	eachSource(t, func(path string, content []byte) {
		if n := bytes.Count(content, []byte("\n")); n > maxLines && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s has %d lines; split it at a seam, at most %d", path, n, maxLines)
		}
	})
}

func TestNothingIsLeftForLater(t *testing.T) {
	words := []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}
	eachSource(t, func(path string, content []byte) {
		for _, w := range words {
			if bytes.Contains(content, []byte(w)) {
				t.Errorf("%s contains %q: do it now, or say in the docs what is not there", path, w)
			}
		}
	})
}

// No file that was built lies among the sources, where the next commit would take it along.
func TestNothingBuiltAmongTheSources(t *testing.T) {
	const most = 1 << 20 // bytes; no source comes near it
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path == filepath.Join(top, "bin") || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if ext := filepath.Ext(path); info.Size() > most && ext != ".test" && ext != ".prof" {
			t.Errorf("%s has %d bytes: build into bin/", path, info.Size())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// eachSource calls see for every Go file of both modules that a person wrote.
func eachSource(t *testing.T, see func(path string, content []byte)) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if name == "testdata" || strings.HasPrefix(name, ".") {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" || strings.HasPrefix(name, "zz_generated") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		see(path, content)
		return nil
	})
	if err != nil || seen < 10 {
		t.Fatalf("walking the repository: %d files, %v", seen, err)
	}
}

// packages lists this module's packages.
func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,Name,GoFiles,TestGoFiles,XTestGoFiles,Imports,Deps", "./...")
	cmd.Dir = root(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing packages: %v: %s", err, &stderr)
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("listing packages: found only %d", len(all))
	}
	return all
}

// root is the folder of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
