package console

import (
	"net/url"
	"regexp"
	"strconv"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/base/livelog"
)

// log returns the log of an attempt, with links to the other attempts.
func (d runData) log(l *ui.Layout, log *logView) Node {
	attempt := func(n int) Node {
		if n == log.Attempt {
			return Group{B(ui.Texts(n)), ui.Space()}
		}
		return Group{A(ui.Relative("href", ui.Joined("?attempt=", n, "#h-log")), ui.Texts(n)), ui.Space()}
	}
	counted := func(n int, name, one, many string) Node {
		return If(n > 0, Group{Text(" · "), A(ui.Relative("href", log.at("", name, "", 0)), ui.Texts(n, ui.Choose(n == 1, one, many)))})
	}
	return ui.Block(
		"log", "Log",
		ui.Quiet(
			If(len(d.Attempts) > 1, Group{Text("Attempt "), Map(d.Attempts, attempt), Text("· ")}),
			ui.Texts(log.Total, " lines, ", ui.Choose(log.Ended, "complete", "still growing")),
			counted(log.Errors, "error", " error", " errors"), counted(log.Warnings, "warn", " warning", " warnings"),
			Text(" · "), l.A("json"+log.Path, Text("as text")),
		),
		If(log.Total > 0, log.search(l, d.RunID)),
		log.position(),
		log.list(l.Root+"runs/"+ui.Segment(d.TaskID)),
	)
}

// at returns the address of lines of the log: those that a filter selects, or those around a line.
func (l *logView) at(text, level, stream string, line int) string {
	query := url.Values{"attempt": {strconv.Itoa(l.Attempt)}}
	for name, value := range map[string]string{"q": text, "level": level, "stream": stream} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if line > 0 {
		query.Set("line", strconv.Itoa(line))
	}
	return ui.WithQuery("", query) + "#h-log"
}

// search returns the form that searches the log.
func (l *logView) search(root *ui.Layout, run string) Node {
	f := l.Filter
	return root.Get(
		ui.RunPath(run)+"#h-log", Class("filters"), Role("search"), Aria("label", "Search the log"),
		ui.HiddenField("attempt", ui.Joined(l.Attempt)),
		ui.Field("Text", Name("q"), Type("search"), Value(ui.Visible(f.Text))),
		Label(Text("Level "), Select(Name("level"), Option(Value(""), Text("all lines")), Map(levelNames, func(known levelName) Node {
			return Option(Value(known.Name), If(f.Level == known.Level, Selected()), Text(known.Text))
		}))),
		Label(Text("Stream "), Select(Name("stream"), Option(Value(""), Text("both")), Map(livelog.Streams(), func(s livelog.Stream) Node {
			return Option(If(f.Stream == string(s), Selected()), Text(string(s)))
		}))),
		ui.Field("From line", Name("line"), ui.Attribute("inputmode", "numeric"), Class("short"), If(f.Line > 0, ui.Attribute("value", f.Line))),
		Button(Text("Search")),
	)
}

// position says which lines the page shows, with links to the others.
func (l *logView) position() Node {
	shown := l.Shown()
	if len(shown) == 0 {
		return If(!l.Following(), ui.Quiet(Text("No line matches. "), A(ui.Relative("href", l.at("", "", "", 0)), Text("Show the end of the log"))))
	}
	first, last := shown[0].Number, shown[len(shown)-1].Number
	if f := l.Filter; f.Searches() {
		further := Node(nil)
		if len(l.found) > 0 && l.found[len(l.found)-1].Number >= last && l.Matches > len(shown) {
			further = Group{Text(" · "), A(ui.Relative("href", l.at(f.Text, f.Level.name(), f.Stream, last+1)), Text("Later matches"))}
		}
		return P(
			Role("status"), ui.Texts(l.Matches, " of ", l.Total, " lines match"), If(l.Matches > len(shown), ui.Texts("; ", len(shown), " are shown")), further,
			Text(" · "), A(ui.Relative("href", l.at("", "", "", 0)), Text("Show the end of the log")),
		)
	}
	if first == 1 && last == l.Total {
		return nil
	}
	return ui.Quiet(
		ui.Texts("Lines ", first, " to ", last),
		If(first > 1, Group{Text(" · "), A(ui.Relative("href", l.at("", "", "", 1)), Text("« First")), Text(" · "), A(ui.Relative("href", l.at("", "", "", max(first-logLines+logContext, 1))), Text("‹ Earlier"))}),
		If(last < l.Total, Group{Text(" · "), A(ui.Relative("href", l.at("", "", "", last+1)), Text("Later ›")), Text(" · "), A(ui.Relative("href", l.at("", "", "", 0)), Text("End »"))}),
	)
}

// list returns the lines of the page. console.js adds those of an attempt that has not ended. run
// is the address of the run.
func (l *logView) list(run string) Node {
	shown := l.Shown()
	if len(shown) == 0 && (l.Ended || !l.Following()) {
		return If(l.Total == 0, ui.Quiet(Text("The attempt has written nothing.")))
	}
	return Ol(
		Class("log"), TabIndex("0"), Aria("label", ui.Joined("Log of attempt ", l.Attempt)),
		If(l.Following(), ui.Flag("data-end")), If(!l.Ended && l.Following(), Data("follow", ui.Joined(run, "/log?attempt=", l.Attempt))), Map(shown, l.item),
	)
}

// item returns a line of the log.
func (l *logView) item(line logLine) Node {
	id := ui.Joined("L", line.Number)
	return Li(
		ID(id), If(line.Level >= levelWarn, Class(line.Level.name())),
		A(ui.Relative("href", ui.Joined("?attempt=", l.Attempt, "&line=", line.Number, "#", id)), Aria("label", ui.Joined("Line ", line.Number)), ui.Texts(line.Number)),
		line.time(),
		Span(If(line.Stream == "stderr", Class("stderr")), Map(line.Parts(), func(p ui.Piece) Node {
			if p.Class == "" {
				return marked(p.Text, l.Filter.Text)
			}
			return I(Class(p.Class), marked(p.Text, l.Filter.Text))
		})),
	)
}

// time returns when the line began. It has no attribute datetime, so console.js leaves it as it is.
func (l logLine) time() Node {
	if l.At.IsZero() {
		return nil
	}
	at := l.At.UTC()
	return Time(TitleAttr(at.Format(ui.ExactTime)), Text(at.Format(time.TimeOnly)))
}

// marks is the number of places that are marked in a part of a line.
const marks = 20

// marked returns a text in which the first places that have the wanted one, in any case, are
// marked.
func marked(shown, wanted string) Node {
	if wanted == "" {
		return Text(shown)
	}
	var all Group
	at := 0
	for _, place := range regexp.MustCompile("(?i)"+regexp.QuoteMeta(wanted)).FindAllStringIndex(shown, marks) {
		all = append(all, Text(shown[at:place[0]]), Mark(Text(shown[place[0]:place[1]])))
		at = place[1]
	}
	return append(all, Text(shown[at:]))
}
