package importer_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/hashicorp/cronexpr"
	"github.com/robfig/cron/v3"

	"github.com/sortie-dev/sortie/local/sortie/importer"
	"github.com/sortie-dev/sortie/shared/domain/job"
)

var programs = []string{"crontab", "kubernetes", "nomad", "github"}

// text returns the job files, notes and the error of a conversion. Every file must be valid.
func text(t *testing.T, program string, s importer.Source) string {
	t.Helper()
	jobs, left, err := importer.Convert(program, s)
	if err != nil {
		if _, ok := errors.AsType[*importer.Error](err); !ok || len(jobs) > 0 {
			t.Errorf("%s: got %T and %d jobs, want an error with a line alone", s.Name, err, len(jobs))
		}
		return err.Error() + "\n"
	}
	var all strings.Builder
	ids := map[string]bool{}
	for _, part := range left {
		fmt.Fprintln(&all, part)
	}
	for _, j := range jobs {
		file, err := j.YAML()
		if err != nil {
			t.Fatal(err)
		}
		d, problems := job.Parse(file, nil)
		if len(problems) > 0 || ids[d.ID] || strings.Contains("\n"+string(file), "\n---") {
			t.Errorf("%s: got %v, id used before: %v, want a valid document of a file:\n%s", s.Name, problems, ids[d.ID], file)
		}
		ids[d.ID] = true
		all.WriteString("---\n")
		all.Write(file)
	}
	return all.String()
}

func TestConversions(t *testing.T) {
	t.Parallel()
	for _, program := range programs {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			datadriven.RunTest(t, filepath.Join("testdata", program), func(t *testing.T, d *datadriven.TestData) string {
				t.Helper()
				s := importer.Source{Text: []byte(d.Input), System: d.HasArg("system"), User: d.HasArg("user")}
				d.ScanArgs(t, "name", &s.Name)
				if d.HasArg("zone") {
					d.ScanArgs(t, "zone", &s.TimeZone)
				}
				return text(t, d.Cmd, s)
			})
		})
	}
}

// TestSchedulesFireAtTheSameTimes compares converted schedules with the parsers of Kubernetes and
// Nomad.
func TestSchedulesFireAtTheSameTimes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 6)) //nolint:gosec // a repeatable test
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pick := func(fields ...string) string { return fields[random.IntN(len(fields))] }
	for range 60 {
		text := strings.Join([]string{
			pick("*", "0", "*/7", "5/20", "1-5,50"), pick("*", "3", "*/5", "4/6", "?"), pick("*", "?", "*/10", "13", "1-7", "2/9,30"),
			pick("*", "*/5", "JAN-MAR", "2"), pick("*", "?", "*/2", "MON", "1-5", "4/1", "SUN"),
		}, " ")
		const periodic = "job \"a\" {\n type = \"batch\"\n periodic {\n cron = %q\n}\n task \"a\" {\n driver = \"docker\"\n config {\n image = \"a\"\n}\n}\n}\n"
		for _, row := range []struct {
			program, text, source string
			next                  func(time.Time) time.Time
		}{
			{
				"kubernetes", text,
				"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: %q, jobTemplate: {spec: {template: {spec: {containers: [{image: a}]}}}}}}",
				func(after time.Time) time.Time {
					s, err := cron.ParseStandard(text)
					if err != nil {
						t.Fatal(err)
					}
					return s.Next(after)
				},
			},
			{"nomad", text, periodic, cronexpr.MustParse(text).Next},
			{"nomad", "0/30 " + text + " *", periodic, cronexpr.MustParse("0/30 " + text + " *").Next},
		} {
			jobs, _, err := importer.Convert(row.program, importer.Source{Text: fmt.Appendf(nil, row.source, row.text)})
			if err != nil || len(jobs) != 1 {
				t.Fatalf("%s: %s: got %d jobs, %v", row.program, row.text, len(jobs), err)
			}
			d := jobs[0].Definition
			s, err := job.ParseSchedule(d.Schedule, d.TimeZone)
			if err != nil {
				t.Fatalf("%s: %s: %v", row.program, row.text, err)
			}
			for after, n := start, 0; n < 8; n++ {
				got, _ := s.Next(after, time.Time{})
				if want := row.next(after); !got.Equal(want) {
					t.Errorf("%s: %s as %s: got %s, want %s", row.program, row.text, d.Schedule, got, want)
					break
				}
				after = got
			}
		}
	}
}

// TestHostileSources checks that each converter refuses each source with a line, or converts it
// to valid jobs, in little time.
func TestHostileSources(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%[1]c [*%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c]\n", c, c-1)
	}
	fits := func(text string) string { return strings.Repeat(text, 40_000/len(text)) }
	for name, row := range map[string]struct{ source, want string }{
		"empty":            {"", "line 1: "},
		"blank":            {"\n\n \n", "line 1: "},
		"huge":             {strings.Repeat("x", importer.SourceLimit+1), "line 1: more than 1048576 bytes"},
		"binary":           {"a\nb\x00c\n", "line 2: binary data"},
		"no UTF-8":         {"a\n\xff\n", "line 2: binary data"},
		"image":            {"\x89PNG\r\n\x1a\n", "line 1: binary data"},
		"anchors":          {bomb, ""},
		"own anchor":       {"a: &a [*a]\n", ""},
		"no anchor":        {"a: *b\n", ""},
		"lists":            {fits("["), ""},
		"objects":          {fits("{a: "), ""},
		"nested lists":     {fits("- "), ""},
		"questions":        {fits("? "), ""},
		"blocks":           {fits("a {\n"), ""},
		"groups":           {"a = " + fits("("), ""},
		"negations":        {"a = " + fits("!"), ""},
		"conditions":       {"a = " + fits("a ? b : "), ""},
		"templates":        {"a = \"" + fits("${\""), ""},
		"loops":            {"a = " + strings.Repeat("[for x in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]: ", 9) + "x" + strings.Repeat("]", 9), ""},
		"operators":        {"a = " + fits("1 + ") + "1", ""},
		"fields":           {fits("a: b\n"), ""},
		"documents":        {fits("---\na: b\n"), ""},
		"entries":          {strings.Repeat("* * * * * a\n", 3000), "line 1"},
		"long line":        {"* * * * * " + strings.Repeat("x", 140_000), ""},
		"no such kind":     {"kind: 1\njobs: 2\n", ""},
		"hostile terminal": {"# \x1b[31m\u202e\n* * * * * a \x1b[0m\u202e\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, program := range programs {
				got := text(t, program, importer.Source{Name: name, Text: []byte(row.source)})
				if !strings.Contains(got, row.want) || !strings.HasPrefix(got, "line ") && program != "crontab" {
					t.Errorf("%s: got %.200q, want an error with %q", program, got, row.want)
				}
				if strings.ContainsAny(got, "\x1b\u202e") {
					t.Errorf("%s: got %q, want nothing that a terminal interprets", program, got)
				}
			}
		})
	}
}

// TestMutatedSourcesAreSafe converts the samples with random mistakes.
func TestMutatedSourcesAreSafe(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 9)) //nolint:gosec // a repeatable test
	for _, program := range programs {
		sample, err := os.ReadFile(filepath.Join("testdata", program))
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			start := random.IntN(len(sample))
			source := bytes.Clone(sample[start:min(len(sample), start+2000)])
			for range 1 + random.IntN(4) {
				at := random.IntN(len(source))
				switch random.IntN(3) {
				case 0:
					source[at] = "{}[]:\"'#%*&!-$\n \t\\"[random.IntN(18)]
				case 1:
					source = append(source[:at], source[min(len(source)-1, at+random.IntN(30)):]...)
				case 2:
					source = append(source, source[at:min(len(source), at+100)]...)
				}
			}
			text(t, program, importer.Source{Name: program, Text: source})
		}
	}
}
