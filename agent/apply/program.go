package apply

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OwnProgram is the running program. It is mapped rather than read, so that its tens of megabytes
// never become memory of this process.
func OwnProgram() (content []byte, release func() error, err error) {
	const own = "/proc/self/exe"
	f, err := os.Open(own)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the running program: %w", err)
	}
	defer func() { _ = f.Close() }() // the mapping stays
	info, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("looking at the running program: %w", err)
	}
	content, err = unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("mapping the running program %q: %w", own, err)
	}
	return content, func() error { return unix.Munmap(content) }, nil
}
