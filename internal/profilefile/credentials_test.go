package profilefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestC01_C02_C04_CredentialsAreReadByteExact(t *testing.T) {
	for user, password := range map[string]string{
		"svc":      "p@ss:w/rd%40#",
		`CORP\svc`: `"a\b$c` + "é\xff" + `d" `,
		"empty":    "",
	} {
		c, err := ReadCredentials(folder(t, map[string]string{"username": user, "password": password}))
		if err != nil {
			t.Fatal(err)
		}
		if c.Username != user || c.Password.Reveal() != password {
			t.Errorf("got %q %q, want %q %q", c.Username, c.Password.Reveal(), user, password)
		}
	}
}

// TestMountedSecret reads through the links of a Secret volume, before and after an update.
func TestMountedSecret(t *testing.T) {
	dir := t.TempDir()
	for version, password := range map[string]string{"..2026_01": "old", "..2026_02": "new"} {
		if err := os.MkdirAll(filepath.Join(dir, version), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]string{"username": "svc", "password": password} {
			if err := os.WriteFile(filepath.Join(dir, version, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	link := func(to, from string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	link("..data/username", "username")
	link("..data/password", "password")
	for _, c := range [][2]string{{"..2026_01", "old"}, {"..2026_02", "new"}} {
		if err := os.RemoveAll(filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		link(c[0], "..data")
		got, err := ReadCredentials(dir)
		if err != nil || got.Password.Reveal() != c[1] {
			t.Errorf("got %v, %v, want %s", got, err, c[1])
		}
	}
}

func TestReadCredentialsRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"newline":  {map[string]string{"username": "svc", "password": "planted\n"}, "ends with a newline"},
		"CRLF":     {map[string]string{"username": "svc", "password": "planted\r\n"}, "byte 8"},
		"inside":   {map[string]string{"username": "svc", "password": "plan\nted"}, "byte 5"},
		"NUL":      {map[string]string{"username": "s\x00vc", "password": "planted"}, "byte 2"},
		"no user":  {map[string]string{"username": "", "password": "planted"}, "is empty"},
		"no file":  {map[string]string{"username": "svc"}, "must hold the files username and password"},
		"too long": {map[string]string{"username": "svc", "password": strings.Repeat("planted", 10000)}, "32768 bytes"},
	} {
		_, err := ReadCredentials(folder(t, c.files))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
