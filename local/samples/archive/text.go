package archive

import (
	"fmt"
	"strings"
)

// narrative returns description.md of a unit.
func narrative(u Unit, below []Unit) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", u.Title)
	paragraph(&b, u.Abstract)
	if u.Abstract == "" && len(below) > 0 {
		paragraph(&b, fmt.Sprintf("%s holds %s.", u.Title, counted(below)))
	}
	var facts []string
	fact := func(name, value string) {
		if value != "" {
			facts = append(facts, "- "+name+": "+value)
		}
	}
	fact("Described as", u.AltTitle)
	fact("Recorded", u.Period.Words())
	fact("Place", u.Place)
	fact("Participants", joinNames(u))
	fact("Part of", u.source())
	fact("Kept by", u.Institution)
	fact("Call number", u.CallNumber)
	fact("National Archives Identifier", u.CatalogID)
	fact("Released", released(u))
	fact("Available as", strings.Join(u.Digitized, ", "))
	paragraph(&b, strings.Join(facts, "\n"))
	section(&b, "Subject log", u.Log)
	section(&b, "History", u.History)
	return []byte(b.String())
}

func paragraph(b *strings.Builder, text string) {
	if text != "" {
		b.WriteString("\n" + text + "\n")
	}
}

func section(b *strings.Builder, title, text string) {
	if text != "" {
		b.WriteString("\n## " + title + "\n\n" + text + "\n")
	}
}

func released(u Unit) string {
	switch {
	case u.Released == "":
		return u.Release
	case u.Release == "":
		return dayWords(u.Released)
	}
	return dayWords(u.Released) + " (" + u.Release + ")"
}

// counted returns the number of units with their level: "71 conversations".
func counted(units []Unit) string {
	one, many := "unit", "units"
	level, sound := units[0].Level, true
	for _, u := range units {
		if u.Level != level {
			level = ""
		}
		sound = sound && u.form() == "Sound"
	}
	switch {
	case level == LevelItem && sound:
		one, many = "conversation", "conversations"
	case level == LevelItem:
		one, many = "item", "items"
	case level == LevelFile:
		one, many = "file", "files"
	case level == LevelSeries:
		one, many = "series", "series"
	}
	if len(units) == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", len(units), many)
}

// joinNames returns the names of the participants. It also mentions unidentified participants.
func joinNames(u Unit) string {
	var names []string
	for _, p := range u.Participants {
		names = append(names, shown(p.Name))
	}
	switch {
	case u.Unidentified && len(names) > 0:
		names = append(names, "others who are not identified")
	case u.Unidentified:
		names = append(names, "unidentified participants")
	}
	return strings.Join(names, "; ")
}

const notice = "Finding-aid note, generated from the catalog description.\n" +
	"It is not a transcript and not part of the recording.\n"

// note returns the OCR text for the ref.json of an item or a file. It has the facts of the
// unit, one in each line, and for a file a list of its items.
func note(u Unit, below []Unit) []byte {
	var b strings.Builder
	b.WriteString(notice)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	b.WriteByte('\n')
	line("Identifier", u.ID)
	line("Title", u.Title)
	line("Recorded", u.Period.Words())
	line("Place", u.Place)
	line("Participants", joinNames(u))
	line("Released", released(u))
	if len(below) > 0 {
		fmt.Fprintf(&b, "\nInventory: %s\n\n", counted(below))
	}
	for _, item := range below {
		number := item.CallNumber
		if number == "" {
			number = item.ID
		}
		fmt.Fprintf(&b, "%s | %s | %s\n", number, item.Period.Words(), joinNames(item))
	}
	return []byte(b.String())
}
