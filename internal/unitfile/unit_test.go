package unitfile

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

func TestC75_ParseUnit(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
		notes      []string
		incomplete bool
	}{
		{"plain", "# c\n[Service]\nA=1\n ; d\n  B = 2 \n", []string{"Service.A=1@3", "Service.B=2@5"}, nil, false},
		{"no section", "Environment=A=1\n", nil, []string{"f:1: the line stands before any section header"}, false},
		{"wrong section", "[Unit]\nEnvironment=A=1\n", []string{"Unit.Environment=A=1@2"}, []string{"f:2: the key stands outside of [Service]"}, false},
		{"wrong capitals", "[service]\nA=1\n[Service]\nenvironment=A=1\n", []string{"service.A=1@2", "Service.environment=A=1@4"},
			[]string{"f:1: systemd knows no such section", "f:4: systemd tells capitals apart"}, false},
		{"variable by itself", "[Service]\nHTTP_PROXY=http://p\n", []string{"Service.HTTP_PROXY=http://p@2"}, []string{"f:2: a variable stands by itself"}, false},
		{"Windows line ends", "[Service]\r\nA=1\r\n", []string{"Service.A=1@2"}, []string{"f: the file has Windows line ends"}, false},
		{"byte order mark", "\ufeff[Service]\nA=1\n", []string{"Service.A=1@2"}, []string{"f:1: the line begins with a byte order mark"}, false},
		{"broken header", "[Service] # x\nA=1\n", nil, []string{"f:1: the section header does not end with ]"}, true},
		{"continuation with a comment in it", "[Service]\nA=1 \\\n# c\n 2\nB=3\n", []string{"Service.A=1   2@2", "Service.B=3@5"}, nil, false},
		{"continuation at the end", "[Service]\nA=1 \\", []string{"Service.A=1@2"}, nil, false},
		{"escaped backslash", "[Service]\nA=1\\\\\nB=2\n", []string{`Service.A=1\\@2`, "Service.B=2@3"}, nil, false},
		{"not UTF-8", "[Service]\nA=\xff\nB=2\n", nil, []string{"f:2: the line is not valid UTF-8"}, true},
		{"no equals sign", "[Service]\nA\n=1\n", nil, []string{"f:2: the line has no =", "f:3: nothing stands before"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ParseUnit("f", []byte(tc.text))
			var lines []string
			for _, d := range got.Directives {
				lines = append(lines, fmt.Sprintf("%s.%s=%s@%d", d.Section, d.Key, d.Value, d.Line))
			}
			if !slices.Equal(lines, tc.want) || got.Incomplete != tc.incomplete {
				t.Errorf("got %q (incomplete %v), want %q", lines, got.Incomplete, tc.want)
			}
			checkNotes(t, got.Notes, tc.notes)
		})
	}
}

func TestC57_CarriageReturnInACommentBecomesADirective(t *testing.T) {
	got := ParseUnit("f", []byte("[Service]\n# reason: a\rExecStartPre=/bin/true\n"))
	if len(got.Directives) != 1 || got.Directives[0].Key != "ExecStartPre" || got.Directives[0].Line != 2 {
		t.Errorf("got %+v, want the directive that systemd would take", got.Directives)
	}
}

func TestValuesResetByAnEmptyOne(t *testing.T) {
	u := ParseUnit("f", []byte("[Service]\nE=1\nE=\nE=2\nE=3\n[Unit]\nE=4\n"))
	if got := u.Values("Service", "E"); !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("got %q", got)
	}
}

func effectiveOf(files map[string]string, unit ...Source) Environment {
	return Effective(Input{Unit: "docker.service", Files: unit, Read: func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}})
}

func TestC72_LosingLinesAreNamed(t *testing.T) {
	env := effectiveOf(nil,
		Source{"/etc/systemd/system/docker.service.d/http-proxy.conf", []byte("[Service]\nEnvironment=HTTP_PROXY=http://a:1\nEnvironment=HTTP_PROXY=http://b:1\n")},
		Source{"/etc/systemd/system/docker.service.d/no-proxy.conf", []byte("[Service]\nEnvironment=NO_PROXY=a\n")},
		Source{"/etc/systemd/system/docker.service.d/zz.conf", []byte("[Service]\nEnvironment=NO_PROXY=b\n")},
	)
	if got := sum(env); got != "HTTP_PROXY=http://b:1 from http-proxy.conf:3 over http-proxy.conf:2; NO_PROXY=b from zz.conf:2 over no-proxy.conf:2" {
		t.Errorf("got %s", got)
	}
}

func TestC08_EnvironmentFileBeatsEveryEnvironment(t *testing.T) {
	env := Effective(Input{
		Unit:    "docker.service",
		Manager: []Assignment{{Name: "HTTP_PROXY", Value: "http://m:1", Position: Position{"/etc/systemd/system.conf", 2}}},
		Files: []Source{
			{"/d/aa.conf", []byte("[Service]\nEnvironmentFile=-/e/docker.env\n")},
			{"/d/zz.conf", []byte("[Service]\nEnvironment=HTTP_PROXY=http://z:1\n")},
		},
		Read: func(string) ([]byte, error) { return []byte("HTTP_PROXY=http://e:1\n"), nil },
	})
	if got := sum(env); got != "HTTP_PROXY=http://e:1 from docker.env:1 over zz.conf:2, system.conf:2" {
		t.Errorf("got %s", got)
	}
}

func TestC07_UnsetEnvironmentRemoves(t *testing.T) {
	env := effectiveOf(map[string]string{"/e": "HTTP_PROXY=x\nhttp_proxy=y\nNO_PROXY=z\n"},
		Source{"/d/a.conf", []byte("[Service]\nUnsetEnvironment=HTTP_PROXY \"http_proxy=other\" NO_PROXY=z\nEnvironmentFile=/e\n")})
	if got := sum(env); got != "http_proxy=y from e:2" {
		t.Errorf("got %s", got)
	}
}

func TestEffectiveLists(t *testing.T) {
	for _, tc := range []struct {
		name, unit, want string
		notes            []string
	}{
		{"Environment is reset", "Environment=A=1\nEnvironment=\nEnvironment=B=2", "B=2 from a.conf:4", nil},
		{"EnvironmentFile is reset", "EnvironmentFile=/e\nEnvironmentFile=", "", nil},
		{"UnsetEnvironment is reset", "Environment=A=1\nUnsetEnvironment=A\nUnsetEnvironment=", "A=1 from a.conf:2", nil},
		{"absent and optional", "EnvironmentFile=-/absent", "", nil},
		{"absent", "EnvironmentFile=/absent", "", []string{"/d/a.conf:2: the file /absent is absent"}},
		{"relative", "EnvironmentFile=e", "", []string{"/d/a.conf:2: the path is not absolute"}},
		{"quoted", "EnvironmentFile=\"/e\"", "", []string{"/d/a.conf:2: the path is not absolute"}},
		{"pattern", "EnvironmentFile=/e/*.env", "", []string{"/d/a.conf:2: the path holds a pattern"}},
		{"specifier", "EnvironmentFile=/%N", "B=2 from docker:1", nil},
		{"passed on", "PassEnvironment=HTTP_PROXY", "", []string{"/d/a.conf:2: variables are passed on"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env := effectiveOf(map[string]string{"/e": "A=1", "/docker": "B=2"}, Source{"/d/a.conf", []byte("[Service]\n" + tc.unit + "\n")})
			if got := sum(env); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			checkNotes(t, env.Notes, tc.notes)
		})
	}
}

// sum writes an environment down in one line, with the base names of files.
func sum(env Environment) string {
	base := func(s Setting) string {
		return fmt.Sprintf("%s:%d", s.Path[strings.LastIndexByte(s.Path, '/')+1:], s.Line)
	}
	var out []string
	for _, v := range env.Variables {
		if _, present := env.Lookup(v.Name); !present {
			continue
		}
		line := v.Name + "=" + v.Value + " from " + base(v.Setting)
		for i, l := range v.Loses {
			line += []string{" over ", ", "}[min(i, 1)] + base(l)
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

func FuzzParseUnit(f *testing.F) {
	f.Add("[Service]\nEnvironment=\"A=1\" \\\n# c\nB=2\n")
	f.Add("\ufeff[Service]\r\nEnvironmentFile=-/e\r\n")
	f.Add("[X\nEnvironment=%")
	f.Fuzz(func(t *testing.T, text string) {
		env := effectiveOf(map[string]string{"/e": text}, Source{"/d/a.conf", []byte(text)})
		for _, v := range env.Variables {
			if !ValidName(v.Name) || v.Line < 1 {
				t.Fatalf("impossible variable %+v of %q", v, text)
			}
		}
		for _, n := range env.Notes {
			if n.Text == "" || n.Kind == "" {
				t.Fatalf("empty note %+v of %q", n, text)
			}
		}
	})
}
