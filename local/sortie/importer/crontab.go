package importer

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/job"
)

var (
	cronAssignment = regexp.MustCompile(`^(?:"([^"]+)"|'([^']+)'|([A-Za-z_][A-Za-z0-9_]*))\s*=\s*(.*)$`)
	cronTime       = regexp.MustCompile(`^(@every\s+\S+|@[A-Za-z_]+|-?[0-9*?~,/-]+(?:\s+[A-Za-z0-9*?~,/#-]+){4})\s+(\S.*)$`)
	cronHeading    = regexp.MustCompile(`(?i)\bdom\b.*\bdow\b|^[-=\s.*|+]*$`)
	singleStep     = regexp.MustCompile(`(?:^|[\s,])\w+/`)
	userName       = regexp.MustCompile(`^([a-z_][a-z0-9_.-]*\$?)\s+(\S.*)$`)
)

// crontabLine is a line of a crontab with a command.
type crontabLine struct {
	number      int
	time, rest  string
	description []string
	env         map[string]string
}

// crontab converts each line with a command to a job.
func crontab(s Source) (jobs []Job, notes []*Error, problem *Error) {
	lines, problem := crontabLines(s.Text)
	if problem != nil {
		return nil, nil, problem
	}
	if len(lines) == 0 {
		return nil, nil, wrong(1, "no line with a command, want a crontab")
	}
	system := !s.User && (s.System || strings.Contains(s.Name, "cron.d/") || s.Name == "/etc/crontab" || namesRoot(lines))
	seen := map[string]int{}
	for _, l := range lines {
		user := ""
		if system {
			found := userName.FindStringSubmatch(l.rest)
			if found == nil {
				return nil, nil, wrong(l.number, "%q: no user before the command, want one in a crontab of the system", shown(l.rest))
			}
			user, l.rest = found[1], found[2]
		}
		j := l.job(s.TimeZone)
		if user != "" {
			j.lose("user: %s: the job runs as the user of the server", user)
		}
		if first, again := seen[l.time+" "+l.rest]; again {
			j.Comments = append(j.Comments, "The line repeats line "+strconv.Itoa(first)+".")
		} else {
			seen[l.time+" "+l.rest] = l.number
		}
		jobs = append(jobs, j)
	}
	return jobs, nil, nil
}

// namesRoot reports whether the user root is before the command of a line, and a user before that of
// each. A user crontab may have the program root, with flags.
func namesRoot(lines []crontabLine) (root bool) {
	for _, l := range lines {
		found := userName.FindStringSubmatch(l.rest)
		if found == nil || strings.HasPrefix(found[2], "-") {
			return false
		}
		root = root || found[1] == "root"
	}
	return root
}

// crontabLines returns the lines with commands. The problem names all malformed lines, up to 20.
func crontabLines(text []byte) (lines []crontabLine, problem *Error) {
	env := map[string]string{}
	var comments, others []string
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		comment, isComment := strings.CutPrefix(line, "#")
		if isComment {
			comments = append(comments, strings.TrimSpace(comment))
			continue
		}
		above := comments
		comments = nil
		if line == "" {
			continue
		}
		if found := cronTime.FindStringSubmatch(line); found != nil {
			lines = append(lines, crontabLine{number, strings.Join(strings.Fields(found[1]), " "), found[2], above, env})
			continue
		}
		found := cronAssignment.FindStringSubmatch(line)
		if found == nil {
			if problem == nil {
				problem = wrong(number, "%q: want five fields of a time or a name such as @daily, and a command", shown(line))
			} else if others = append(others, strconv.Itoa(number)); len(others) > 20 {
				break
			}
			continue
		}
		env = maps.Clone(env) // earlier lines keep theirs
		env[found[1]+found[2]+found[3]] = unquoted(found[4])
	}
	if len(others) > 0 {
		problem.Problem += "; the same of line " + strings.Join(others, ", ")
	}
	return lines, problem
}

// unquoted removes a pair of quotes around the value of a variable.
func unquoted(text string) string {
	if n := len(text); n > 1 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		return text[1 : n-1]
	}
	return text
}

// job converts the line. Variables of cron itself become fields or comments.
func (l crontabLine) job(zone string) Job {
	command, input := percent(l.rest)
	j := Job{line: l.number, Definition: job.Definition{
		ID: commandID(command), Image: "exec:/bin/sh", Command: []string{"-c", command}, Input: input,
		RetryConfig: &job.RetryConfig{MaxRetries: new(0)},
	}}
	d := &j.Definition
	for _, line := range l.description {
		if line != "" && !cronHeading.MatchString(line) {
			j.Comments = append(j.Comments, line)
		}
	}
	if len(j.Comments) == 1 && !cronTime.MatchString(j.Comments[0]) {
		d.Name = limit.Cut(display.Clean(j.Comments[0]), limit.FileName)
	}
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		value := l.env[name]
		switch name {
		case "SHELL":
			if path.IsAbs(value) {
				d.Image = "exec:" + value
				continue
			}
			j.lose("%s: %s", name, value)
		case "CRON_TZ":
			zone = value
		case "RANDOM_DELAY":
			d.Jitter = job.Duration(value + "m")
		case "MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING", "START_HOURS_RANGE":
			j.lose("%s: %s", name, value)
		default:
			j.variable(name, value)
		}
	}
	time, quiet := strings.CutPrefix(l.time, "-")
	if quiet {
		j.lose("-: cron does not log the start")
	}
	if singleStep.MatchString(time) {
		j.lose("schedule: %s: programs differ on the step after a single value; the field continues to its end here", time)
	}
	j.schedule(time, zone, false)
	return j
}

// variable adds an environment variable.
func (j *Job) variable(name, value string) {
	if j.Definition.Env == nil {
		j.Definition.Env = map[string]job.Variable{}
	}
	j.Definition.Env[name] = job.Variable{Value: value}
}

// percent splits a command from its standard input: % is a line feed, and the first one ends
// the command. \% is a plain %.
func percent(text string) (command, input string) {
	var parts [2]strings.Builder
	part := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && text[i+1] == '%':
			parts[part].WriteByte('%')
			i++
		case c == '%' && part == 0:
			part = 1
		case c == '%':
			parts[1].WriteByte('\n')
		default:
			parts[part].WriteByte(c)
		}
	}
	if part == 1 {
		parts[1].WriteByte('\n')
	}
	return strings.TrimSpace(parts[0].String()), parts[1].String()
}

var (
	// cronGuard matches what precedes the command that a line is about: a test, a folder, variables.
	cronGuard = regexp.MustCompile(`^[\s({]*(?:\[.*?\]|(?:test|cd|export|sleep|source|\.)\s[^&|;]*|[A-Za-z_]\w*=[^\s;]*)\s*(?:&&|\|\||;)\s*`)
	// launchers are programs that run another one.
	launchers = regexp.MustCompile(`^(?:sudo|nice|ionice|env|exec|time|timeout|flock|setsid|nohup|chronic|run-parts|sh|bash|zsh|python[0-9.]*|perl|php[0-9.]*|ruby|node)$`)
	extension = regexp.MustCompile(`\.(?:sh|py|pl|php|rb|js)$`)
)

// commandID returns an id from the first word of a command that looks like the name of its
// program or script.
func commandID(command string) string {
	for cronGuard.MatchString(command) {
		command = command[len(cronGuard.FindString(command)):]
	}
	skip, fallback := false, ""
	for word := range strings.FieldsSeq(command) {
		name := path.Base(strings.Trim(word, `"'();`))
		switch {
		case word == "-u": // a user follows
			skip = true
		case word[0] == '-' || strings.ContainsAny(word, "=<>$&|(") || strings.Trim(name, "0123456789.smhd") == "":
		case skip:
			skip = false
		case launchers.MatchString(name):
			skip, fallback = name == "flock", name
		default:
			return ID(extension.ReplaceAllString(name, ""))
		}
	}
	return ID(fallback)
}
