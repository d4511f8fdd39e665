package apply

import "time"

// Event is progress: a step that begins or ends.
type Event struct {
	Step Step
	// Unit that it is about, or "".
	Unit string
	// Ended is false when the step begins.
	Ended bool
	// Err is why it failed, when it ended.
	Err error
	// Note for a person, such as what the restart does to containers.
	Note string
	At   time.Time
}

// Observer is told of progress; it must return soon.
type Observer func(Event)
