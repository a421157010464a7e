package ui

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Chip is a filter that is in effect. Path is the address without it.
type Chip struct{ Name, Value, Path string }

// Pager has the addresses of other pages of a list; empty if there is no such page.
type Pager struct{ Newest, Older string }

// Preset is a filter with a name.
type Preset struct {
	Label, Path string
	Current     bool
}

// ChipsOf returns a chip for each filter. A page without a filter begins at the newest record.
func ChipsOf(path string, filter url.Values) (chips []Chip) {
	for name := range filter {
		without := url.Values{}
		for other, values := range filter {
			if other != name {
				without[other] = values
			}
		}
		chips = append(chips, Chip{Name: name, Value: filter.Get(name), Path: WithQuery(path, without)})
	}
	slices.SortFunc(chips, func(a, b Chip) int { return strings.Compare(a.Name, b.Name) })
	return chips
}

// PagerOf returns the addresses of the first and the next page of a list.
func PagerOf(path string, filter url.Values, cursor, next string) (p Pager) {
	with := url.Values{}
	maps.Copy(with, filter)
	if cursor != "" {
		p.Newest = WithQuery(path, with)
	}
	if next != "" {
		with.Set("cursor", next)
		p.Older = WithQuery(path, with)
	}
	return p
}
