package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

// text returns the texts of values, one after the other.
func text(values ...any) Node { return Text(joined(values...)) }

// joined returns the texts of values, one after the other.
func joined(values ...any) string {
	var b strings.Builder
	for _, value := range values {
		switch v := value.(type) {
		case string:
			b.WriteString(v)
		case int:
			b.WriteString(strconv.Itoa(v))
		case int64:
			b.WriteString(strconv.FormatInt(v, 10))
		default:
			fmt.Fprint(&b, v)
		}
	}
	return b.String()
}

// attr returns an attribute that is not an address. Its value is that of joined.
func attr(name string, values ...any) Node { return Attr(name, joined(values...)) }

// relative returns an attribute that is an address. The address must be relative to the page, so no
// text of a client can lead to another origin or run a script.
func relative(name, address string) Node {
	if !slices.ContainsFunc([]string{"./", "../", "?", "#"}, func(start string) bool { return strings.HasPrefix(address, start) }) {
		address = "#refused"
	}
	return Attr(name, escaped(address))
}

// escaped returns an address in which each character that an address cannot have is escaped.
func escaped(address string) string {
	var b strings.Builder
	for i := range len(address) {
		c := address[i]
		if c == '%' && !percent(address[i:]) {
			b.WriteString("%25")
			continue
		}
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"'()<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02x", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// percent reports whether a text begins with an escaped character.
func percent(text string) bool {
	if len(text) < 3 {
		return false
	}
	_, err := strconv.ParseUint(text[1:3], 16, 8)
	return err == nil
}

// queryValue returns a value for the query of an address.
func queryValue(value string) string {
	return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}

// segment returns a segment of a path.
func segment(text string) string { return url.PathEscape(text) }

// href returns the address of a path below the console.
func (l *layout) href(path string) Node { return relative("href", l.Root+path) }

// a returns a link to a path below the console.
func (l *layout) a(path string, children ...Node) Node { return A(l.href(path), Group(children)) }

// button returns a link that looks like a button.
func (l *layout) button(path string, children ...Node) Node {
	return l.a(path, Class("button"), Group(children))
}

// get returns a form that reads a path below the console.
func (l *layout) get(path string, children ...Node) Node {
	return Form(relative("action", l.Root+path), Group(children))
}

// post returns a form that changes something, with the token that it needs.
func (l *layout) post(path string, children ...Node) Node {
	return Form(Method("post"), relative("action", l.Root+path), hiddenField("form", l.Form), Group(children))
}

// hiddenField returns a field that a form sends.
func hiddenField(name, value string) Node { return Input(Type("hidden"), Name(name), Value(value)) }

// with returns the markup of a value that is not zero.
func with[T comparable](value T, markup func(T) Node) Node {
	var zero T
	if value == zero {
		return nil
	}
	return markup(value)
}

// choose returns one of two values.
func choose[T any](condition bool, yes, no T) T {
	if condition {
		return yes
	}
	return no
}

// commas returns the markup of values with commas between them.
func commas[T any](values []T, markup func(T) Node) Group {
	var all Group
	for i, value := range values {
		all = append(all, If(i > 0, Text(", ")), markup(value))
	}
	return all
}

func space() Node { return Text(" ") }

func bdi(shown string) Node { return El("bdi", Text(shown)) }

func code(shown string) Node { return Code(Text(shown)) }

func quiet(children ...Node) Node { return P(Class("quiet"), Group(children)) }

func sub(children ...Node) Node { return Span(Class("sub"), Group(children)) }

// none is in the place of a value that is absent.
func none(shown string) Node { return Span(Class("none"), Text(shown)) }

// head returns the title of a page and what is beside it.
func head(title Node, children ...Node) Node {
	return Div(Class("head"), H1(title), space(), Group(children))
}

func actions(children ...Node) Node { return Div(Class("actions"), Group(children)) }

// section returns a section with a title. Its heading has the id with the prefix "h-".
func section(id, title string, children ...Node) Node {
	return Section(Aria("labelledby", "h-"+id), H2(ID("h-"+id), Text(title)), Group(children))
}

// card returns a section with a frame.
func card(id, title string, children ...Node) Node {
	return section(id, title, Class("card"), Group(children))
}

func facts(children ...Node) Node { return Dl(Class("facts"), Group(children)) }

func fact(name string, children ...Node) Node {
	return Div(Dt(Text(name)), Dd(children...))
}

// term returns a name and what it means, for a list of them.
func term(name string, children ...Node) Node { return Group{Dt(Text(name)), Dd(children...)} }

// headings returns the headings of a table.
func headings(cells ...Node) Node { return THead(Tr(cells...)) }

// th returns headings of columns.
func th(names ...string) Node {
	return Map(names, func(name string) Node { return Th(Scope("col"), Text(name)) })
}

// thNum returns headings of columns with numbers.
func thNum(names ...string) Node {
	return Map(names, func(name string) Node { return Th(Scope("col"), Class("num"), Text(name)) })
}

// thHidden returns the heading of a column that only screen readers need.
func thHidden(name string) Node { return Th(Scope("col"), Span(Class("sr"), Text(name))) }

// table returns a table with rows.
func table(headings Node, rows ...Node) Node { return Table(headings, TBody(rows...)) }

// scrolled returns a table that scrolls on a narrow screen.
func scrolled(headings Node, rows ...Node) Node { return Div(Class("table"), table(headings, rows...)) }

// listing returns a table whose rows become cards on a narrow screen.
func listing(headings Node, rows ...Node) Node {
	return Div(Class("table rows"), table(headings, rows...))
}

// num returns a cell with a number.
func num(children ...Node) Node { return Td(Class("num"), Group(children)) }

// labelled returns a cell with a number, and its name for a narrow screen.
func labelled(name string, children ...Node) Node {
	return Td(Class("num"), Data("label", name), Group(children))
}

// wide returns a cell with a long text.
func wide(children ...Node) Node { return Td(Class("wide"), Group(children)) }

// extra returns a cell that a narrow screen omits.
func extra(children ...Node) Node { return Td(Class("extra"), Group(children)) }

// flag returns an attribute without a value.
func flag(name string) Node { return Attr(name) }

// field returns a field of a form with its label.
func field(label string, children ...Node) Node {
	return Label(Text(label+" "), Input(children...))
}
