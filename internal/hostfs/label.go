package hostfs

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const labelAttribute = "security.selinux"

// copyLabel gives a new file the SELinux label of the file that it will replace, or that of its
// directory. The kernel would give it one that depends on the writing process, with which a
// confined daemon might not be able to read it.
//
// It is best effort: most hosts have no labels, and where one cannot be set the file is still
// right; that the daemon could not read it would show in its process environment.
func copyLabel(f *os.File, target string) {
	label, ok := readLabel(target)
	if !ok {
		label, ok = readLabel(filepath.Dir(target))
	}
	if ok {
		_ = unix.Fsetxattr(int(f.Fd()), labelAttribute, label, 0)
	}
}

func readLabel(real string) ([]byte, bool) {
	label := make([]byte, 4096) // labels are below a page
	n, err := unix.Lgetxattr(real, labelAttribute, label)
	if err != nil || n == 0 {
		return nil, false
	}
	return label[:n], true
}
