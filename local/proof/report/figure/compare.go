package figure

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Change is a figure that differs between two reports by more than its noise.
type Change struct {
	Part, Name string
	Was, Is    Figure
	// Worse says that the figure moved in the wrong direction, that its goal is missed now, or
	// that it is gone.
	Worse bool
	// Gone says that the new report lacks the figure.
	Gone bool
}

// String returns the change as one line.
func (c Change) String() string {
	if c.Gone {
		return fmt.Sprintf("%s: %s: was %s, is not measured now", c.Part, c.Name, c.Was.Text())
	}
	line := fmt.Sprintf("%s: %s: was %s, is %s", c.Part, c.Name, c.Was.Text(), c.Is.Text())
	if c.Was.Value != 0 {
		line += fmt.Sprintf(" (%+.0f %%)", 100*(c.Is.Value-c.Was.Value)/math.Abs(c.Was.Value))
	}
	if c.Is.Missed && !c.Was.Missed {
		line += ", misses its goal of " + c.Is.Goal
	}
	return line
}

// Compare returns what differs, by part and in the order of the figures. A part that only one
// report has is not compared: it names those in the second result.
func Compare(was, is map[string]*Part) (changes []Change, alone []string) {
	names := slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(is)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if was[name] == nil || is[name] == nil {
			alone = append(alone, name)
			continue
		}
		changes = append(changes, compareParts(was[name], is[name])...)
	}
	return changes, alone
}

func compareParts(was, is *Part) []Change {
	var changes []Change
	for _, old := range was.Figures {
		now, found := is.Find(old.Name)
		if !found {
			changes = append(changes, Change{Part: was.Name, Name: old.Name, Was: old, Worse: true, Gone: true})
			continue
		}
		missed := now.Missed && !old.Missed
		if !missed && math.Abs(now.Value-old.Value) <= max(old.Noise, now.Noise)*math.Abs(old.Value) {
			continue
		}
		worse := missed || now.Better == More && now.Value < old.Value || now.Better == Less && now.Value > old.Value
		changes = append(changes, Change{Part: was.Name, Name: old.Name, Was: old, Is: now, Worse: worse})
	}
	return changes
}
