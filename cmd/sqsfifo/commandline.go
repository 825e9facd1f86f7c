package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

// helpAsked ends the parser after a help text: the parser panics with a helpAsked value,
// and parse recovers from this panic.
type helpAsked struct{ code int }

// parse returns the subcommand of a command line with its flags, and the subcommand's
// name for errors. If err and c are both nil, parse has printed help to standard output,
// as requested.
func parse(args []string, std stdio) (c command, name string, err error) {
	name = "sqsfifo"
	parser, err := newParser(std.out)
	if err != nil {
		return nil, name, err
	}
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(helpAsked); !ok {
				panic(v)
			}
			c, err = nil, nil
		}
	}()
	if len(args) == 0 {
		return nil, name, errors.New("no command")
	}
	if args[0] == "--version" {
		args = []string{"version"}
	}
	node, depth := parser.Model.Node, 0
	for depth < len(args) {
		child := commandNode(node, args[depth])
		if child == nil {
			break
		}
		node, depth = child, depth+1
		name += " " + node.Name
	}
	if depth > 0 {
		args = doubleDashes(node, args)
	}
	hasCommand := depth > 0 && len(node.Children) == 0 || depth < len(args) && strings.HasPrefix(args[depth], "-")
	parsed, err := parser.Parse(args)
	if err != nil {
		return nil, name, plainer(err, hasCommand)
	}
	c, ok := parsed.Selected().Target.Addr().Interface().(command)
	if !ok {
		return nil, name, fmt.Errorf("%s cannot run", parsed.Command())
	}
	return c, name, nil
}

// limits has default values of flags. In the tag of a flag, ${retry_for} stands for the
// value of retry_for.
var limits = kong.Vars{
	"retry_for":  window.RetryFor.String(),
	"resend_for": outbox.DefaultResendFor.String(),
	// With an idempotency store (--journal), NewQueue refuses to retry for more than 4m25s.
	// "sqsfifo send" therefore has the default 4m20s instead of retry_for, which is 4m30s.
	"send_for":        (window.RetryFor - 2*window.Slack).String(),
	"forgotten_after": (replay.Interval + replay.Margin).String(),
}

func newParser(out io.Writer) (*kong.Kong, error) {
	return kong.New(new(commandLine),
		kong.Name("sqsfifo"),
		kong.Description("Works on Amazon SQS FIFO queues: sends events that are neither lost nor delivered twice, and finds what loses or doubles them.\n\n"+
			"Each command reads and writes JSON lines. Data goes to standard output, everything else to standard error. "+
			"The exit code is 0 when all is well, 1 when something was found, 2 when the command could not do its work."),
		limits,
		kong.Writers(out, out),
		kong.Exit(func(code int) { panic(helpAsked{code}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
	)
}

func commandNode(parent *kong.Node, name string) *kong.Node {
	for _, node := range parent.Children {
		if node.Name == name {
			return node
		}
	}
	return nil
}

// doubleDashes accepts flags with one dash, like Go's commands: it changes -json to --json
// if the command has this flag. Other arguments, and all arguments after "--", stay
// unchanged.
func doubleDashes(node *kong.Node, args []string) []string {
	known := map[string]bool{"help": true}
	for _, f := range node.Flags {
		known[f.Name] = true
	}
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = arg
		if arg == "--" {
			copy(out[i:], args[i:])
			break
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && known[name] && len(name) > 1 {
			out[i] = "-" + arg
		}
	}
	return out
}

// plainer rewrites an error of the parser kong for users of the command line. Without a
// command in the arguments, plainer replaces "unexpected argument" by "no command".
func plainer(err error, hasCommand bool) error {
	rest, ok := strings.CutPrefix(err.Error(), "unexpected argument ")
	if !ok {
		return err
	}
	what := "unexpected argument"
	if !hasCommand {
		what = "no command"
	}
	word, more, _ := strings.Cut(rest, ", ")
	if more != "" {
		return fmt.Errorf("%s %q; %s", what, strings.Trim(word, `"`), more)
	}
	return fmt.Errorf("%s %q", what, strings.Trim(word, `"`))
}
