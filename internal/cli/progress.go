package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// patience is how long a step may take before it is shown.
const patience = 2 * time.Second

// Progress tells a waiting person what is being done. A step that ends within two seconds is never
// shown. On a terminal the step in hand stands on one line that is drawn anew; elsewhere it is
// written once as a line of its own.
type Progress struct {
	w        io.Writer
	terminal bool
	colour   Colour

	mu      sync.Mutex
	text    string
	began   time.Time
	shown   bool
	frame   int
	stop    chan struct{}
	stopped sync.WaitGroup
}

// Progress starts telling on Err. End must be called.
func (p *Printer) Progress() *Progress {
	pr := &Progress{w: p.Err, terminal: p.Terminal, colour: p.ErrColour, stop: make(chan struct{})}
	pr.stopped.Go(pr.run)
	return pr
}

// Step says what is being done now.
func (p *Progress) Step(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.text, p.began, p.shown = text, time.Now(), false
}

// End stops telling and leaves the line clean.
func (p *Progress) End() {
	close(p.stop)
	p.stopped.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.text = ""
}

func (p *Progress) run() {
	tick := time.NewTicker(125 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case now := <-tick.C:
			p.draw(now)
		}
	}
}

func (p *Progress) draw(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waited := now.Sub(p.began)
	if p.text == "" || waited < patience {
		return
	}
	if !p.terminal {
		if !p.shown {
			fmt.Fprintf(p.w, "... %s\n", p.text)
		}
		p.shown = true
		return
	}
	spinner := [...]string{"|", "/", "-", `\`}
	p.frame = (p.frame + 1) % len(spinner)
	fmt.Fprintf(p.w, "\r\x1b[K%s %s %s", p.colour.Yellow(spinner[p.frame]), p.text, p.colour.Dim(waited.Truncate(time.Second).String()))
	p.shown = true
}

// clear removes the line in hand from a terminal.
func (p *Progress) clear() {
	if p.terminal && p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
