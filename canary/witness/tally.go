package witness

// Sample is one TCP connection as the kernel reports it.
type Sample struct {
	// ID is the kernel's cookie, unique to the socket.
	ID uint64
	// Inode of the socket's file; 0 when no process holds it any more.
	Inode uint32
	Socket
}

// tally keeps the highest counters of the connections that a process tree opened since the first
// sample.
type tally struct {
	before map[uint64]bool
	opened map[uint64]Socket
	others map[uint64]bool
}

func newTally(before []Sample) *tally {
	t := &tally{before: map[uint64]bool{}, opened: map[uint64]Socket{}, others: map[uint64]bool{}}
	for _, s := range before {
		t.before[s.ID] = true
	}
	return t
}

// add takes the next samples. owned returns the inodes that the process tree holds; it is called
// only when there is a connection that was not seen before, for it is the dear part.
func (t *tally) add(samples []Sample, owned func() (map[uint32]bool, error)) error {
	var inodes map[uint32]bool
	for _, s := range samples {
		if t.before[s.ID] || t.others[s.ID] {
			continue
		}
		known, ok := t.opened[s.ID]
		if !ok {
			if s.Inode == 0 {
				continue // nobody's any more, and it was never seen with its owner
			}
			if inodes == nil {
				var err error
				if inodes, err = owned(); err != nil {
					return err
				}
			}
			if !inodes[s.Inode] {
				t.others[s.ID] = true
				continue
			}
		}
		// Late states report fewer bytes, or none: what was seen stays seen.
		s.Received = max(s.Received, known.Received)
		t.opened[s.ID] = s.Socket
	}
	return nil
}

func (t *tally) sockets() []Socket {
	var all []Socket
	for _, s := range t.opened {
		all = append(all, s)
	}
	return all
}
