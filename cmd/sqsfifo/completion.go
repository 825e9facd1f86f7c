package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (*completionCmd) Help() string {
	return `Prints a script that completes commands, flags and their values.

Examples:

	source <(sqsfifo completion bash)
	sqsfifo completion zsh > "${fpath[1]}/_sqsfifo"
	sqsfifo completion fish > ~/.config/fish/completions/sqsfifo.fish`
}

func (c *completionCmd) run(_ context.Context, std stdio) error {
	parser, err := newParser(std.out)
	if err != nil {
		return err
	}
	model := parser.Model
	switch c.Shell {
	case "bash":
		bashCompletion(std.out, model)
	case "zsh":
		// zsh can run the completion script for bash.
		fmt.Fprint(std.out, "#compdef sqsfifo\nautoload -U +X bashcompinit && bashcompinit\n")
		bashCompletion(std.out, model)
	default:
		fishCompletion(std.out, model)
	}
	return nil
}

// words returns the possible values of a command's argument for completion, such as the
// rule IDs for "explain". It returns none for an argument that names a file.
func words(name string, model *kong.Application) []string {
	switch name {
	case "explain":
		var ids []string
		for _, r := range everyRule() {
			ids = append(ids, r.ID)
		}
		return ids
	case "help":
		return append(append(topCommands(model), topics()...), "all")
	case "completion":
		return []string{"bash", "zsh", "fish"}
	}
	if node := commandNode(model.Node, name); node != nil {
		return commandNames(node)
	}
	return nil
}

func topCommands(model *kong.Application) []string {
	var names []string
	for _, name := range commandNames(model.Node) {
		if !strings.Contains(name, " ") {
			names = append(names, name)
		}
	}
	return names
}

// flagsOf returns the flags of a command and its subcommands, each name once.
func flagsOf(node *kong.Node) []*kong.Flag {
	flags, seen := slices.Clone(node.Flags), map[string]bool{}
	for _, child := range node.Children {
		flags = append(flags, flagsOf(child)...)
	}
	return slices.DeleteFunc(flags, func(f *kong.Flag) bool {
		again := seen[f.Name]
		seen[f.Name] = true
		return again
	})
}

func bashCompletion(w io.Writer, model *kong.Application) {
	fmt.Fprintf(w, `_sqsfifo() {
  local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "%s --help" -- "$cur"))
    return
  fi
  case "$command $previous" in
`, strings.Join(topCommands(model), " "))
	for _, node := range model.Children {
		for _, f := range flagsOf(node) {
			if f.Enum != "" {
				fmt.Fprintf(w, "    \"%s --%s\") COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return;;\n", node.Name, f.Name, strings.ReplaceAll(f.Enum, ",", " "))
			}
		}
	}
	fmt.Fprint(w, "  esac\n  case \"$command\" in\n")
	for _, node := range model.Children {
		all := words(node.Name, model)
		for _, f := range flagsOf(node) {
			all = append(all, "--"+f.Name)
		}
		fmt.Fprintf(w, "    %s) words=\"%s --help\";;\n", node.Name, strings.Join(all, " "))
	}
	fmt.Fprint(w, `  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _sqsfifo sqsfifo
`)
}

func fishCompletion(w io.Writer, model *kong.Application) {
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'" }
	for _, node := range model.Children {
		fmt.Fprintf(w, "complete -c sqsfifo -n __fish_use_subcommand -f -a %s -d %s\n", node.Name, quote(node.Help))
	}
	for _, node := range model.Children {
		within := "complete -c sqsfifo -n '__fish_seen_subcommand_from " + node.Name + "'"
		if all := words(node.Name, model); all != nil {
			fmt.Fprintf(w, "%s -f -a %s\n", within, quote(strings.Join(all, " ")))
		}
		for _, f := range flagsOf(node) {
			line := within + " -l " + f.Name + " -d " + quote(f.Help)
			switch {
			case f.Enum != "":
				line += " -x -a " + quote(strings.ReplaceAll(f.Enum, ",", " "))
			case !f.IsBool():
				line += " -r"
			}
			fmt.Fprintln(w, line)
		}
	}
}
