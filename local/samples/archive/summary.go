package archive

import "slices"

// Summarize fills empty fields of a holder from the units that it contains. The period spans
// those of the units. The other fields get the values that all units share. A history that all
// units share moves to the holder. If made is true and the holder is a file, it also gets all
// participants of the units.
func Summarize(holder *Unit, units []*Unit, made bool) {
	periods := make([]Period, len(units))
	for i, u := range units {
		periods[i] = u.Period
	}
	if holder.Period.Start == "" {
		holder.Period = span(periods)
	}
	for _, field := range []func(*Unit) *string{
		func(u *Unit) *string { return &u.Place },
		func(u *Unit) *string { return &u.Coordinates },
		func(u *Unit) *string { return &u.Institution },
		func(u *Unit) *string { return &u.Describer },
		func(u *Unit) *string { return &u.Language },
		func(u *Unit) *string { return &u.Rights },
		func(u *Unit) *string { return &u.Release },
		func(u *Unit) *string { return &u.Released },
	} {
		if *field(holder) == "" && agree(units, field) {
			*field(holder) = *field(units[0])
		}
	}
	history := func(u *Unit) *string { return &u.History }
	if agree(units, history) && (holder.History == "" || holder.History == units[0].History) {
		holder.History = units[0].History
		for _, u := range units {
			u.History = ""
		}
	}
	form := func(u *Unit) *string { return &u.Form }
	if holder.Level == LevelFile && (holder.Form == "" || holder.Form == "Collection") && agree(units, form) {
		holder.Form = units[0].Form
	}
	if made && holder.Level == LevelFile {
		gather(holder, units)
	}
}

// agree reports whether a field has the same value in all units.
func agree(units []*Unit, field func(*Unit) *string) bool {
	for _, u := range units {
		if *field(u) != *field(units[0]) {
			return false
		}
	}
	return true
}

// gather adds to the holder the participants of all units, and the headings that all units
// share.
func gather(holder *Unit, units []*Unit) {
	for _, u := range units {
		holder.Unidentified = holder.Unidentified || u.Unidentified
		for _, p := range u.Participants {
			if !slices.Contains(holder.Participants, p) {
				holder.Participants = append(holder.Participants, p)
			}
		}
	}
	for _, h := range units[0].Headings {
		if !slices.ContainsFunc(units[1:], func(u *Unit) bool { return !slices.Contains(u.Headings, h) }) {
			holder.Headings = append(holder.Headings, h)
		}
	}
}
