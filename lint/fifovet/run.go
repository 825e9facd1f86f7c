package fifovet

import (
	"golang.org/x/tools/go/analysis"
)

func (s *settings) run(pass *analysis.Pass) (any, error) {
	need, reach := s.needs(pass)
	ignores := readIgnores(pass)
	if need != nothing {
		p := build(pass, s)
		if need == all {
			r := &reporter{p: p, ignores: ignores, reported: map[string]bool{}}
			p.check(r, reach)
			r.flush()
		}
		for _, export := range []func() bool{p.exportSinks, p.exportNondet, p.exportDerived, p.exportCalls} {
			reach.Facts = export() || reach.Facts
		}
	}
	if (reach.SDK || reach.Facts) && pass.Pkg.Name() != "main" { // which nobody imports
		pass.ExportPackageFact(&reach)
	}
	ignores.reportUnused(pass, s)
	return nil, nil
}

func (p *program) check(r *reporter, reach reachFact) {
	messages := p.collect()
	uses := p.uses(messages)
	for _, u := range uses {
		p.checkIDs(r, u)
		p.checkBody(r, u)
		p.checkRetry(r, u)
	}
	p.checkGroups(r, uses)
	p.checkShared(r, uses)
	for _, m := range messages {
		p.checkQueue(r, m, reach.SDK)
	}
	for _, l := range p.letters(messages) {
		p.checkAttributes(r, l)
	}
	p.checkConfigs(r)
}
