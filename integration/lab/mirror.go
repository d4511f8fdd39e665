//go:build linux

package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hostMirror is the archive from which the host itself is installed: the first
// entry of its apt sources for its own release with the component main.
func hostMirror() (string, error) {
	if m := os.Getenv(MirrorEnv); m != "" {
		return m, nil
	}
	codename, err := hostCodename("/etc/os-release")
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob("/etc/apt/sources.list.d/*")
	if err != nil {
		return "", fmt.Errorf("listing apt sources: %w", err)
	}
	for _, f := range append([]string{"/etc/apt/sources.list"}, files...) {
		raw, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("reading apt sources: %w", err)
		}
		find := mirrorInList
		if strings.HasSuffix(f, ".sources") {
			find = mirrorInStanzas
		}
		if m := find(string(raw), codename); m != "" {
			return m, nil
		}
	}
	return "", fmt.Errorf("finding a Debian mirror: no entry for %q with component main in /etc/apt/sources.list*: set %s to the URL of one", codename, MirrorEnv)
}

func hostCodename(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the host's release: %w", err)
	}
	for line := range strings.Lines(string(raw)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME="); ok {
			return strings.Trim(v, `"`), nil
		}
	}
	return "", fmt.Errorf("reading the host's release: no VERSION_CODENAME in %q: set %s to the URL of a Debian mirror", path, MirrorEnv)
}

// mirrorInStanzas reads the deb822 form of sources.list(5).
func mirrorInStanzas(text, codename string) string {
	for stanza := range strings.SplitSeq(text, "\n\n") {
		fields := map[string][]string{}
		for line := range strings.Lines(stanza) {
			if key, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, " ") {
				fields[strings.ToLower(key)] = strings.Fields(value)
			}
		}
		if slices.Contains(fields["types"], "deb") && slices.Contains(fields["suites"], codename) &&
			slices.Contains(fields["components"], "main") && len(fields["uris"]) > 0 {
			return fields["uris"][0]
		}
	}
	return ""
}

// mirrorInList reads the one-line form of sources.list(5).
func mirrorInList(text, codename string) string {
	for line := range strings.Lines(text) {
		if open := strings.IndexByte(line, '['); open >= 0 {
			if end := strings.IndexByte(line, ']'); end > open {
				line = line[:open] + line[end+1:]
			}
		}
		f := strings.Fields(line)
		if len(f) >= 4 && f[0] == "deb" && f[2] == codename && slices.Contains(f[3:], "main") {
			return f[1]
		}
	}
	return ""
}
