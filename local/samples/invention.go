package samples

import (
	"fmt"
	"strings"

	"github.com/sortie-dev/sortie/local/samples/archive"
)

// dice is the random generator splitmix64, whose numbers are the same in every release of Go.
type dice struct{ state uint64 }

func (d *dice) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a random number from 0 to n-1.
func (d *dice) below(n int) int { return int(d.next() % uint64(n)) }

func pick[T any](d *dice, from []T) T { return from[d.below(len(from))] }

// shuffled returns the position of i in a sequence of n that is shuffled with seed. It uses a
// Feistel network over the next power of four, repeated until the result is less than n.
func shuffled(i, n int, seed uint64) int {
	half := 1
	for 1<<(2*half) < n {
		half++
	}
	mask := uint64(1)<<half - 1
	x := uint64(i)
	for {
		left, right := x>>half, x&mask
		for round := range uint64(4) {
			left, right = right, left^(&dice{seed ^ right<<8 ^ round}).next()&mask
		}
		if x = left<<half | right; x < uint64(n) {
			return int(x)
		}
	}
}

var (
	surnames = []string{"Abt", "Brunner", "Castell", "Dvořák", "Eklund", "Færø", "Grau", "Hébert", "Ibsen", "Jónsdóttir", "Keller", "Lund"}
	given    = []string{"Ada", "Bo", "Clara", "Dag", "Edith", "Finn", "Greta", "Hugo"}
	places   = []string{"Bern", "Göteborg", "Kraków", "Lisboa", "Tromsø", "Zürich"}
	topics   = []string{"Bridges", "Glaciers", "Lighthouses", "Printing & binding", "Railways", "Tides", "Weather <stations>"}
	filler   = strings.Fields("a account after and archive at before box by clerk copied date each entry field first folio from hand " +
		"harbour in ink is its later leaf ledger letter line list made margin measured near north note number of on one page paper " +
		"pencil record river same sheet signed south survey table the then tower two under volume was water while with year")
)

// unit returns an invented unit for entity i.
func (g *generated) unit(i int) archive.Unit {
	d := &dice{g.seed*0x2545f4914f6cdd1d + uint64(i)}
	year, month, day := 1850+d.below(100), 1+d.below(12), 1+d.below(28)
	u := archive.Unit{
		ID:          fmt.Sprintf("generated-%08d", i),
		Level:       archive.LevelItem,
		Title:       fmt.Sprintf("Leaf %d of the %s ledger", i, pick(d, topics)),
		Form:        "Text",
		Period:      archive.Period{Start: fmt.Sprintf("%04d-%02d-%02d", year, month, day)},
		Place:       pick(d, places),
		Institution: "The Archive of Made-up Records",
		Language:    "en",
		Rights:      "Creative Commons CC0 1.0 (https://creativecommons.org/publicdomain/zero/1.0/)",
		Headings:    []archive.Heading{{Kind: archive.HeadingTopic, Text: pick(d, topics)}},
	}
	switch {
	case i == 0:
		u.Level, u.Form, u.Title = archive.LevelCollection, "Collection", fmt.Sprintf("Made-up collection %d", g.seed)
	case i*g.shape.Fanout+1 < g.shape.Entities:
		u.Level, u.Form, u.Title = archive.LevelFile, "Collection", fmt.Sprintf("Box %d", i)
	}
	for range 1 + d.below(3) {
		u.Participants = append(u.Participants, archive.Party{Kind: archive.Person, Name: pick(d, surnames) + ", " + pick(d, given)})
	}
	u.Abstract = invent(d, 120)
	u.Log = invent(d, g.shape.TextBytes)
	u.CallNumber = fmt.Sprintf("G %d/%d", g.seed%1000, i)
	return u
}

// invent returns sentences of about size bytes.
func invent(d *dice, size int) string {
	var b strings.Builder
	for b.Len() < size {
		words := 6 + d.below(10)
		for w := range words {
			word := pick(d, filler)
			if w == 0 {
				word = strings.ToUpper(word[:1]) + word[1:]
			}
			b.WriteString(word)
			b.WriteByte(" ."[w/(words-1)])
		}
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}
