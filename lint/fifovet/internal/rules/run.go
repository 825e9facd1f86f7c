package rules

import (
	"slices"

	"golang.org/x/tools/go/analysis"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

func (s *settings) run(pass *analysis.Pass) (any, error) {
	need, reach := s.neededDepth(pass)
	ignores := readIgnores(pass)
	if need != nothing {
		p := &audit{Index: message.NewIndex(pass, flow.Sources(s.nondet.names)), set: s, reach: reach}
		if need == all {
			p.r = &reporter{p: p, ignores: ignores, reported: map[string]bool{}}
			p.check()
			p.r.reportAll()
		}
		p.ExportSinks()
		p.ExportFacts()
		reach.Facts = reach.Facts || p.HasFacts
	}
	if (reach.SDK || reach.Facts) && pass.Pkg.Name() != "main" { // no package imports a package main
		pass.ExportPackageFact(&reach)
	}
	ignores.reportUnused(pass, s)
	return nil, nil
}

// audit checks one package.
type audit struct {
	*message.Index
	set   *settings
	reach reachFact
	r     *reporter

	messages []*message.Message
	uses     []*message.Use
	letters  []*message.Letter
}

// check runs every rule. It also records the parameters that become parts of messages, so
// check must run before ExportSinks exports these parameters.
func (p *audit) check() {
	p.messages = p.Collect()
	p.uses = p.Uses(p.messages)
	p.letters = p.Letters(p.messages)
	for _, rule := range table {
		rule.check(p)
	}
}

// fifoUses returns the values with one of the roles in messages to queues that are or may
// be FIFO.
func (p *audit) fifoUses(roles ...message.Role) []*message.Use {
	return slices.DeleteFunc(slices.Clone(p.uses), func(u *message.Use) bool {
		return u.Evidence == message.NotFIFO || !slices.Contains(roles, u.Role)
	})
}

// raw returns the messages that the package sends directly through the AWS SDKs. For a
// batch call it returns the entries, not the input of the call.
func (p *audit) raw() []*message.Message {
	return slices.DeleteFunc(slices.Clone(p.messages), func(m *message.Message) bool { return m.Shape.Sdk || m.Shape.Batch })
}
