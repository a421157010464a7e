package ui

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

// Texts returns the texts of values, one after the other.
func Texts(values ...any) Node { return Text(Joined(values...)) }

// Joined returns the texts of values, one after the other.
func Joined(values ...any) string {
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

// Attribute returns an attribute that is not an address. Its value is that of joined.
func Attribute(name string, values ...any) Node { return Attr(name, Joined(values...)) }

// Relative returns an attribute that is an address. The address must be relative to the page, so no
// text of a client can lead to another origin or run a script.
func Relative(name, address string) Node {
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

// QueryValue returns a value for the query of an address.
func QueryValue(value string) string {
	return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}

// href returns the address of a path below the console.
func (l *Layout) href(path string) Node { return Relative("href", l.Root+path) }

// A returns a link to a path below the console.
func (l *Layout) A(path string, children ...Node) Node { return A(l.href(path), Group(children)) }

// Button returns a link that looks like a button.
func (l *Layout) Button(path string, children ...Node) Node {
	return l.A(path, Class("button"), Group(children))
}

// Get returns a form that reads a path below the console.
func (l *Layout) Get(path string, children ...Node) Node {
	return Form(Relative("action", l.Root+path), Group(children))
}

// Post returns a form that changes something, with the token that it needs.
func (l *Layout) Post(path string, children ...Node) Node {
	return Form(Method("post"), Relative("action", l.Root+path), HiddenField("form", l.Form), Group(children))
}

// To returns the path to which a button sends its form, in place of the form's own.
func (l *Layout) To(path string) Node { return Relative("formaction", l.Root+path) }

// HiddenField returns a field that a form sends.
func HiddenField(name, value string) Node { return Input(Type("hidden"), Name(name), Value(value)) }

// With returns the markup of a value that is not zero.
func With[T comparable](value T, markup func(T) Node) Node {
	var zero T
	if value == zero {
		return nil
	}
	return markup(value)
}

// Choose returns one of two values.
func Choose[T any](condition bool, yes, no T) T {
	if condition {
		return yes
	}
	return no
}

// Commas returns the markup of values with commas between them.
func Commas[T any](values []T, markup func(T) Node) Group {
	var all Group
	for i, value := range values {
		all = append(all, If(i > 0, Text(", ")), markup(value))
	}
	return all
}

// Space separates elements of a line.
func Space() Node { return Text(" ") }

// Bdi returns a text of a client, whose direction does not change that of the text around it.
func Bdi(shown string) Node { return El("bdi", Text(shown)) }

// Mono returns a text in the font of code.
func Mono(shown string) Node { return Code(Text(shown)) }

// Quiet returns a paragraph in a less visible colour.
func Quiet(children ...Node) Node { return P(Class("quiet"), Group(children)) }

// SubLine returns a second line below a text.
func SubLine(children ...Node) Node { return Span(Class("sub"), Group(children)) }

// None is in the place of a value that is absent.
func None(shown string) Node { return Span(Class("none"), Text(shown)) }

// Top returns the title of a page and what is beside it.
func Top(title Node, children ...Node) Node {
	return Div(Class("head"), H1(title), Space(), Group(children))
}

// Actions returns the buttons of a page.
func Actions(children ...Node) Node { return Div(Class("actions"), Group(children)) }

// Block returns a section with a title. Its heading has the id with the prefix "h-".
func Block(id, title string, children ...Node) Node {
	return Section(Aria("labelledby", "h-"+id), H2(ID("h-"+id), Text(title)), Group(children))
}

// Card returns a section with a frame.
func Card(id, title string, children ...Node) Node {
	return Block(id, title, Class("card"), Group(children))
}

// Facts returns a list of names and values.
func Facts(children ...Node) Node { return Dl(Class("facts"), Group(children)) }

// Fact returns a name and its value for Facts.
func Fact(name string, children ...Node) Node {
	return Div(Dt(Text(name)), Dd(children...))
}

// Term returns a name and what it means, for a list of them.
func Term(name string, children ...Node) Node { return Group{Dt(Text(name)), Dd(children...)} }

// Headings returns the headings of a table.
func Headings(cells ...Node) Node { return THead(Tr(cells...)) }

// Columns returns headings of columns.
func Columns(names ...string) Node {
	return Map(names, func(name string) Node { return Th(Scope("col"), Text(name)) })
}

// NumberColumns returns headings of columns with numbers.
func NumberColumns(names ...string) Node {
	return Map(names, func(name string) Node { return Th(Scope("col"), Class("num"), Text(name)) })
}

// HiddenColumn returns the heading of a column that only screen readers need.
func HiddenColumn(name string) Node { return Th(Scope("col"), Span(Class("sr"), Text(name))) }

// Grid returns a table with rows.
func Grid(headings Node, rows ...Node) Node { return Table(headings, TBody(rows...)) }

// Scrolled returns a table that scrolls on a narrow screen.
func Scrolled(headings Node, rows ...Node) Node { return Div(Class("table"), Grid(headings, rows...)) }

// Listing returns a table whose rows become cards on a narrow screen.
func Listing(headings Node, rows ...Node) Node {
	return Div(Class("table rows"), Grid(headings, rows...))
}

// Num returns a cell with a number.
func Num(children ...Node) Node { return Td(Class("num"), Group(children)) }

// Labelled returns a cell with a number, and its name for a narrow screen.
func Labelled(name string, children ...Node) Node {
	return Td(Class("num"), Data("label", name), Group(children))
}

// Wide returns a cell with a long text.
func Wide(children ...Node) Node { return Td(Class("wide"), Group(children)) }

// Extra returns a cell that a narrow screen omits.
func Extra(children ...Node) Node { return Td(Class("extra"), Group(children)) }

// Flag returns an attribute without a value.
func Flag(name string) Node { return Attr(name) }

// Field returns a field of a form with its label.
func Field(label string, children ...Node) Node {
	return Label(Text(label+" "), Input(children...))
}

// FieldName returns the name of a field.
func FieldName(name string) Node { return Span(Class("label"), Text(name)) }

// By returns who has changed a record; it is empty for an empty name.
func By(name string) Node {
	return If(name != "", Text(" by "+Visible(name)))
}
