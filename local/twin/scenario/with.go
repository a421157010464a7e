package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

// Settable are the fields that With can change.
const Settable = "days, startTime, limits.machines, limits.startsPerSecond, limits.burst"

// With returns the scenario with other values of fields, each as FIELD=VALUE; see Settable.
func (s Scenario) With(assignments []string) (Scenario, error) {
	if len(assignments) == 0 {
		return s, nil
	}
	for _, text := range assignments {
		if err := s.File.set(text); err != nil {
			return s, err
		}
	}
	// The files were read before. The scenario that this one differs from keeps its jobs.
	s.File.Jobs = slices.Clone(s.File.Jobs)
	for i, j := range s.jobs {
		s.File.Jobs[i].File, s.File.Jobs[i].Job = "", new(j.definition)
	}
	c := &check{}
	s.check(c, nil)
	if err := c.err(s); err != nil {
		return s, err
	}
	s.Name += " with " + strings.Join(assignments, ", ")
	return s, nil
}

// set changes a field.
func (f *File) set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("malformed setting %q, want FIELD=VALUE, such as limits.machines=20", text)
	}
	whole, notWhole := strconv.Atoi(value)
	number, notNumber := strconv.ParseFloat(value, 64)
	var err error
	switch name {
	case "days":
		f.Days, err = whole, notWhole
	case "startTime":
		f.StartTime = job.Duration(value)
	case "limits.machines":
		f.Limits.Machines, err = &whole, notWhole
	case "limits.startsPerSecond":
		f.Limits.StartsPerSecond, err = &number, notNumber
	case "limits.burst":
		f.Limits.Burst, err = &whole, notWhole
	default:
		return fmt.Errorf("%q cannot be set, want one of %s", name, Settable)
	}
	if err != nil {
		return fmt.Errorf("%s: malformed value %q, want a number", name, value)
	}
	return nil
}
