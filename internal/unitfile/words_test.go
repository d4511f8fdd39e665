package unitfile

import (
	"slices"
	"strings"
	"testing"
)

func TestC11_EnvironmentIsWhatSystemdMakesOfIt(t *testing.T) {
	at := Position{"f.conf", 3}
	for _, tc := range []struct {
		name, value string
		want        []string
		notes       []string
	}{
		{"two pairs quoted apart", `"A=a b" 'B=c'`, []string{"A=a b", "B=c"}, nil},
		{"all pairs in one string", `"HTTP_PROXY=http://p:1 HTTPS_PROXY=http://p:1"`,
			[]string{"HTTP_PROXY=http://p:1 HTTPS_PROXY=http://p:1"}, []string{"f.conf:3: several NAME=value pairs stand in one pair of quotes"}},
		{"curly quotes", `“HTTP_PROXY=http://p:1”`, nil, []string{"f.conf:3: the quote stands before the name"}},
		{"spaces without quotes", `NO_PROXY=a, b`, []string{"NO_PROXY=a,"}, []string{"f.conf:3: a word has no ="}},
		{"unknown escape drops the rest", `A=1 B=CORP\svc C=CORP\user D=3`, []string{"A=1", "B=CORP vc"}, []string{"f.conf:3: systemd stops at a backslash sequence"}},
		{"open quote", `A=1 "B=2`, []string{"A=1"}, []string{"f.conf:3: systemd stops at a quote"}},
		{"backslash at the end", `A=1 B=\`, []string{"A=1"}, []string{"f.conf:3: systemd stops at a backslash"}},
		{"escapes", `A=\x41\101\u00e4\U0001F600\t\\\"`, []string{"A=AAä😀\t\\\""}, nil},
		{"NUL escapes", `A=\x00`, nil, []string{"f.conf:3: systemd stops"}},
		{"bytes that are no UTF-8", `A=\xff`, nil, []string{"f.conf:3: the value is not valid UTF-8"}},
		{"unknown specifier", `A=p%40 B=2`, []string{"B=2"}, []string{"f.conf:3: a % is followed by"}},
		{"percent escaped", `A=p%%40`, []string{"A=p%40"}, nil},
		{"known specifier is replaced", `A=x%Cy`, []string{"A=x/var/cachey"}, []string{"f.conf:3: a % is followed by a letter that is a specifier"}},
		{"specifier of the host", `A=caf%C3%A9`, []string{"A=caf/var/cache3%A9?"}, []string{"f.conf:3: a % is followed by a letter that is a specifier"}},
		{"percent before a sign", `A=50%!`, []string{"A=50%!"}, nil},
		{"dollar and hash", `A=$x#y`, []string{"A=$x#y"}, nil},
		{"empty value", `A=`, []string{"A="}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, notes := ParseEnvironment(at, "docker.service", tc.value)
			var pairs []string
			for _, a := range got {
				pair := a.Name + "=" + a.Value
				if a.Inexact {
					pair += "?"
				}
				pairs = append(pairs, pair)
			}
			if !slices.Equal(pairs, tc.want) {
				t.Errorf("got %q, want %q", pairs, tc.want)
			}
			checkNotes(t, notes, tc.notes)
		})
	}
}

func TestSpecifiersOfAUnit(t *testing.T) {
	got := expand("foo-bar@a-b.service", "%n|%N|%p|%i|%j|%I|%t|%S|%L|%E|%T|%V")
	want := "foo-bar@a-b.service|foo-bar@a-b|foo-bar|a-b|bar|a/b|/run|/var/lib|/var/log|/etc|/tmp|/var/tmp"
	if got.text != want || got.inexact || got.unknown {
		t.Errorf("got %+v, want %q", got, want)
	}
}

func FuzzQuoteWord(f *testing.F) {
	for _, v := range awkward() {
		f.Add(v)
	}
	f.Add("a\x00")
	f.Fuzz(func(t *testing.T, value string) {
		word, err := QuoteWord("A=" + value)
		if err != nil {
			if ValidText(value) && !HasControl(strings.ReplaceAll(value, "\t", "")) {
				t.Fatalf("QuoteWord(%q): %v", value, err)
			}
			return
		}
		unit := ParseUnit("f", []byte("[Service]\nEnvironment="+word+" B=1\n"))
		if len(unit.Directives) != 1 {
			t.Fatalf("%q gives %+v", word, unit)
		}
		got, _ := ParseEnvironment(Position{}, "u.service", unit.Directives[0].Value)
		if len(got) != 2 || got[0].Value != value || got[0].Inexact {
			t.Fatalf("%q is read as %+v, want %q", word, got, value)
		}
	})
}
