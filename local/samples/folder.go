package samples

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/sortie-dev/sortie/local/samples/archive"
	"github.com/sortie-dev/sortie/local/samples/ead"
	"github.com/sortie-dev/sortie/local/samples/nara"
)

// FromEAD reads the finding aids in dir and its subfolders, which are all files whose names end
// in .xml. The parent of a finding aid is the file (tape) that it names, or else the series, or
// else the collection. Units that only finding aids name are created from the finding aids.
// Levels above that are mentioned, but are entities only if dir has their finding aid. Children
// are ordered by identifier, with numbers by value. The components of a finding aid that have
// an id are entities below it, in the order of the finding aid; see ead.ParseAll.
//
// Other files are skipped; see Collection.Skipped. FromEAD returns an error that names each
// file that cannot be parsed or repeats an identifier. It also returns an error if there is no
// finding aid.
func FromEAD(dir fs.FS) (*Collection, error) {
	r := eadReader{found: map[string]archive.Unit{}, from: map[string]string{}}
	skipped, err := eachFile(dir, ".xml", r.read)
	if err := errors.Join(append(r.failures, err)...); err != nil {
		return nil, fmt.Errorf("cannot read the finding aids: %w", err)
	}
	if len(r.found) == 0 {
		return nil, fmt.Errorf("no EAD finding aid in the folder (%d other XML files)", len(r.skipped))
	}
	c, err := fromUnits(hang(r.found))
	if err != nil {
		return nil, fmt.Errorf("cannot order the finding aids: %w", err)
	}
	c.skipped = slices.Concat(r.skipped, skipped)
	slices.SortFunc(c.skipped, func(a, b Skipped) int { return cmp.Compare(a.File, b.File) })
	return c, nil
}

// eadReader collects the units of finding aids.
type eadReader struct {
	found    map[string]archive.Unit
	from     map[string]string
	skipped  []Skipped
	failures []error
}

func (r *eadReader) read(name string, content []byte) {
	units, err := ead.ParseAll(bytes.NewReader(content), strings.TrimSuffix(path.Base(name), path.Ext(name)))
	switch {
	case errors.Is(err, ead.ErrOther):
		r.skipped = append(r.skipped, Skipped{name, err.Error()})
		return
	case err != nil:
		r.failures = append(r.failures, fmt.Errorf("%s: %w", name, err))
		return
	}
	for _, u := range units {
		if other := r.from[u.ID]; other != "" {
			r.failures = append(r.failures, fmt.Errorf("%s: identifier %q is already used by %s", name, u.ID, other))
			return
		}
		r.found[u.ID], r.from[u.ID] = u, name
	}
}

// FromCatalog reads the conversation lists (.json) and the catalog records (.xml) in dir and
// its subfolders. Usually the only root is the collection. Below it are series, tapes and
// conversations. Tapes without a record are created from their conversations. Records without a
// conversation are dropped. Files of other kinds, including finding aids, are skipped.
//
// FromCatalog returns an error that names each file that cannot be parsed or repeats the
// identifier of a conversation or record. It also returns an error if there is no conversation.
func FromCatalog(dir fs.FS) (*Collection, error) {
	found := map[string]archive.Unit{}
	from := map[string]string{}
	tapes := map[string]archive.Unit{}
	var failures []error
	fail := func(name string, err error) { failures = append(failures, fmt.Errorf("%s: %w", name, err)) }
	_, errJSON := eachFile(dir, ".json", func(name string, content []byte) {
		units, err := nara.ParseConversations(bytes.NewReader(content))
		if err != nil {
			if !errors.Is(err, nara.ErrOther) {
				fail(name, err)
			}
			return
		}
		for _, u := range units {
			if other := from[u.ID]; other != "" {
				fail(name, fmt.Errorf("conversation %q is also in %s", u.ID, other))
				continue
			}
			found[u.ID], from[u.ID] = u, name
		}
	})
	_, errXML := eachFile(dir, ".xml", func(name string, content []byte) {
		records, err := nara.ParseTapes(bytes.NewReader(content))
		if err != nil {
			if !errors.Is(err, nara.ErrOther) {
				fail(name, err)
			}
			return
		}
		for _, u := range records {
			if _, twice := tapes[u.ID]; twice {
				fail(name, fmt.Errorf("the record of %q is also in another file", u.ID))
				continue
			}
			tapes[u.ID] = u
		}
	})
	if err := errors.Join(append(failures, errJSON, errXML)...); err != nil {
		return nil, fmt.Errorf("cannot read the catalog: %w", err)
	}
	if len(found) == 0 {
		return nil, errors.New("no list of conversations in the folder")
	}
	c, err := fromUnits(stack(found, tapes))
	if err != nil {
		return nil, fmt.Errorf("cannot order the catalog: %w", err)
	}
	return c, nil
}

// eachFile calls use for each file whose name ends in ending, in the order of the paths. It
// returns the other files. It ignores hidden files and folders.
func eachFile(dir fs.FS, ending string, use func(name string, content []byte)) (others []Skipped, err error) {
	err = fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("cannot read the folder: %w", err)
		}
		if hidden := name != "." && strings.HasPrefix(entry.Name(), "."); hidden {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() {
			return nil
		}
		if !strings.EqualFold(path.Ext(name), ending) {
			others = append(others, Skipped{name, "its name does not end in " + ending})
			return nil
		}
		content, err := fs.ReadFile(dir, name)
		if err != nil {
			return fmt.Errorf("cannot read the file: %w", err)
		}
		use(name, content)
		return nil
	})
	return others, err
}

// byIdentifier compares units by identifier, with numbers by value. The components of a finding
// aid come after it, in the order of the finding aid.
func byIdentifier(a, b archive.Unit) int {
	return cmp.Or(
		compareNatural(cmp.Or(a.FindingAid, a.ID), cmp.Or(b.FindingAid, b.ID)), cmp.Compare(a.Component, b.Component), compareNatural(a.ID, b.ID),
	)
}

func compareNatural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		p, q := run(x), run(y)
		x, y = x[len(p):], y[len(q):]
		m, n := strings.TrimLeft(p, "0"), strings.TrimLeft(q, "0")
		if isDigit(p) && isDigit(q) {
			if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); c != 0 {
				return c
			}
			continue
		}
		if c := cmp.Compare(p, q); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// run returns the longest prefix of s that has only digits or no digits.
func run(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool { return isDigit(string(r)) != isDigit(s[:1]) })
	if end < 0 {
		return s
	}
	return s[:end]
}

func isDigit(s string) bool { return s != "" && s[0] <= unicode.MaxASCII && s[0] >= '0' && s[0] <= '9' }

// sorted returns the units of a map, ordered by identifier.
func sorted(units map[string]archive.Unit) []archive.Unit {
	list := make([]archive.Unit, 0, len(units))
	for _, u := range units {
		list = append(list, u)
	}
	slices.SortFunc(list, byIdentifier)
	return list
}
