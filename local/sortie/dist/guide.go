package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sortie-dev/sortie/local/sortie/command"
)

// guides returns the completions and the man pages of the command line.
func guides() ([]entry, error) {
	root := command.Tree()
	root.InitDefaultHelpCmd()
	var bash, zsh, fish bytes.Buffer
	if err := root.GenBashCompletionV2(&bash, true); err != nil {
		return nil, err
	}
	if err := root.GenZshCompletion(&zsh); err != nil {
		return nil, err
	}
	if err := root.GenFishCompletion(&fish, true); err != nil {
		return nil, err
	}
	list := []entry{
		{"completions/sortie.bash", bash.Bytes(), 0o644},
		{"completions/_sortie", zsh.Bytes(), 0o644},
		{"completions/sortie.fish", fish.Bytes(), 0o644},
	}
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		list = append(list, entry{"man/man1/" + page(c) + ".1", []byte(manual(c)), 0o644})
		for _, sub := range c.Commands() {
			if !sub.Hidden && sub.Name() != "help" {
				add(sub)
			}
		}
	}
	add(root)
	return list, nil
}

// page returns the name of the man page of a command.
func page(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manual returns the man page of a command.
func manual(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", quoted(strings.ToUpper(page(c))), escaped(page(c)), escaped(c.Short), escaped(c.UseLine()))
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n")
	for paragraph := range strings.SplitSeq(long, "\n\n") {
		if strings.HasPrefix(paragraph, " ") { // an example or a table
			b.WriteString(literal(paragraph))
			continue
		}
		b.WriteString(".PP\n" + escaped(paragraph) + "\n")
	}
	flags(&b, "OPTIONS", c.NonInheritedFlags())
	flags(&b, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n" + literal(c.Example))
	}
	var related []string
	if c.HasParent() {
		related = append(related, page(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			related = append(related, page(sub))
		}
	}
	if len(related) > 0 {
		b.WriteString(".SH SEE ALSO\n")
		for i, name := range related {
			end := ","
			if i == len(related)-1 {
				end = ""
			}
			fmt.Fprintf(&b, ".BR %s (1)%s\n", escaped(name), end)
		}
	}
	return b.String()
}

func flags(b *strings.Builder, title string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", quoted(title))
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		text := "--" + f.Name
		if f.Shorthand != "" {
			text = "-" + f.Shorthand + ", " + text
		}
		if name != "" {
			text += " " + name
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", escaped(text), escaped(usage))
	})
}

func literal(text string) string { return ".PP\n.nf\n" + escaped(text) + "\n.fi\n" }

func quoted(text string) string { return `"` + escaped(text) + `"` }

// escaped protects what troff would read as a request, an escape or a hyphen.
func escaped(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
