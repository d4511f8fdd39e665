package decide

import (
	"fmt"
	"slices"
	"time"

	// The controller's image may hold no time zones of its own.
	_ "time/tzdata"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// span is a time in which a window is open.
type span struct{ from, to time.Time }

// OpenUntil returns when the windows that are open now close; windows that meet or overlap count
// as one. It returns false when none is open. No windows at all are always open, and close at the
// zero time.
func OpenUntil(windows []v1alpha1.Window, now time.Time) (time.Time, bool, error) {
	if len(windows) == 0 {
		return time.Time{}, true, nil
	}
	spans, err := spansAround(windows, now)
	if err != nil {
		return time.Time{}, false, err
	}
	end, open := now, false
	for _, s := range spans { // sorted by their beginning
		if !s.from.After(end) && s.to.After(end) {
			end, open = s.to, true
		}
	}
	return end, open, nil
}

// NextOpening returns the next time after now at which a window opens.
func NextOpening(windows []v1alpha1.Window, now time.Time) (time.Time, error) {
	spans, err := spansAround(windows, now)
	if err != nil {
		return time.Time{}, err
	}
	for _, s := range spans {
		if s.from.After(now) {
			return s.from, nil
		}
	}
	return time.Time{}, nil
}

// spansAround returns the spans from two days before now, as a window may be open for a day and a
// time zone may be most of a day away, to nine days after, sorted.
func spansAround(windows []v1alpha1.Window, now time.Time) ([]span, error) {
	var spans []span
	for i, w := range windows {
		zone, err := time.LoadLocation(w.TimeZone)
		if err != nil {
			return nil, fmt.Errorf("reading spec.rollout.windows[%d]: finding the time zone %q: %w; write an IANA name such as Europe/Berlin", i, w.TimeZone, err)
		}
		start, err := time.Parse("15:04", w.Start)
		if err != nil {
			return nil, fmt.Errorf("reading spec.rollout.windows[%d].start: found %q; write HH:MM", i, w.Start)
		}
		today := now.In(zone)
		for offset := -2; offset <= 9; offset++ {
			day := time.Date(today.Year(), today.Month(), today.Day()+offset, 12, 0, 0, 0, zone)
			if len(w.Days) > 0 && !slices.Contains(w.Days, v1alpha1.Day(day.Format("Mon"))) {
				continue
			}
			from := localTime(day, start.Hour(), start.Minute())
			spans = append(spans, span{from, from.Add(w.Duration.Duration)})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	return spans, nil
}

// localTime is that time of that day. A time that the clocks skip is the moment at which they skip
// it; one that they show twice is the first of the two.
func localTime(day time.Time, hour, minute int) time.Time {
	t := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, day.Location())
	if t.Hour() != hour || t.Minute() != minute {
		begin, end := t.ZoneBounds()
		wanted := time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
		shown := time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
		if shown > wanted {
			return begin
		}
		return end
	}
	if begin, _ := t.ZoneBounds(); !begin.IsZero() {
		_, offset := t.Zone()
		_, before := begin.Add(-time.Nanosecond).Zone()
		earlier := t.Add(time.Duration(offset-before) * time.Second)
		if before > offset && earlier.Before(begin) && earlier.Hour() == hour && earlier.Minute() == minute {
			return earlier
		}
	}
	return t
}
