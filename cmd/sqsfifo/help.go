package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// topicFiles are the texts of "sqsfifo help TOPIC".
//
//go:embed topics/*.txt
var topicFiles embed.FS

type helpCmd struct {
	Topic []string `arg:"" optional:"" help:"A command, a topic, or all."`
}

func (*helpCmd) Help() string {
	return "Prints the manual of a command, as --help does, or a topic: " + strings.Join(topics(), ", ") + `. "all" is every command and topic.`
}

func topics() []string {
	files, err := fs.Glob(topicFiles, "topics/*.txt")
	if err != nil { // cannot fail, because the pattern is constant and valid
		return nil
	}
	for i, name := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(name, "topics/"), ".txt")
	}
	return files
}

func (c *helpCmd) run(_ context.Context, std stdio) error {
	topic := strings.Join(c.Topic, " ")
	switch topic {
	case "":
		if err := printHelp(std.out); err != nil {
			return err
		}
		fmt.Fprintf(std.out, "Topics of \"sqsfifo help TOPIC\": %s, all\n", strings.Join(topics(), ", "))
		return nil
	case "all":
		return printAll(std.out)
	}
	if text, err := topicFiles.ReadFile("topics/" + topic + ".txt"); err == nil {
		_, err := std.out.Write(text)
		return err
	}
	parser, err := newParser(std.out)
	if err != nil {
		return err
	}
	names := commandNames(parser.Model.Node)
	if slices.Contains(names, topic) {
		return printHelp(std.out, c.Topic...)
	}
	return fmt.Errorf("no command or topic %q; did you mean %q?", topic, nearest(topic, append(topics(), names...)))
}

// nearest returns the element of `words` that is most similar to `word` (see distance).
func nearest(word string, words []string) string {
	best := ""
	for _, w := range words {
		if best == "" || distance(word, w) < distance(word, best) {
			best = w
		}
	}
	return best
}

// commandNames returns the commands in help order, each followed by its subcommands, as
// in "outbox lag".
func commandNames(parent *kong.Node) []string {
	var names []string
	for _, node := range parent.Children {
		if node.Hidden {
			continue
		}
		names = append(names, node.Name)
		for _, within := range commandNames(node) {
			names = append(names, node.Name+" "+within)
		}
	}
	return names
}

// printHelp prints the help text of a command. The parameter `args` has the names of the
// command and the subcommand.
func printHelp(w io.Writer, args ...string) error {
	c, _, err := parse(append(slices.Clone(args), "--help"), stdio{out: w})
	if c != nil {
		return errors.New("the parser has not printed the help")
	}
	return err
}

// printAll prints the whole manual.
func printAll(w io.Writer) error {
	parser, err := newParser(w)
	if err != nil {
		return err
	}
	if err := printHelp(w); err != nil {
		return err
	}
	rule := strings.Repeat("-", 80)
	for _, name := range commandNames(parser.Model.Node) {
		fmt.Fprintf(w, "\n%s\n", rule)
		if err := printHelp(w, strings.Fields(name)...); err != nil {
			return err
		}
	}
	for _, name := range topics() {
		text, err := topicFiles.ReadFile("topics/" + name + ".txt")
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "\n%s\n%s", rule, text); err != nil {
			return err
		}
	}
	return nil
}
