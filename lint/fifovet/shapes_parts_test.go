package fifovet

// partCarriers pass a value through parts of values: the results of function values, what
// iterators yield, the results of interface methods and of methods of type parameters, and
// what a channel carries.
var partCarriers = []carrier{
	{name: "iterator", decl: `func each$(` + params + `) iter.Seq[string] { return func(yield func(string) bool) { yield(@) } }`, pre: `var id string; for v := range each$(` + args + `) { id = v }`, expr: `id`},
	{name: "iterator of pairs", decl: `func each$(` + params + `) iter.Seq2[int, string] { return func(yield func(int, string) bool) { for i := range 3 { if !yield(i, @) { return } } } }`, pre: `var id string; for _, v := range each$(` + args + `) { id = v; break }`, expr: `id`},
	{name: "first of an iterator", decl: `func each$(` + params + `) iter.Seq[string] { return func(yield func(string) bool) { yield(@) } }; func first$[T any](seq iter.Seq[T]) T { for v := range seq { return v }; var none T; return none }`, expr: `first$(each$(` + args + `))`},
	{name: "collected iterator", picked: true, decl: `func each$(` + params + `) iter.Seq[string] { return func(yield func(string) bool) { yield(@) } }`, pre: `ids := slices.Collect(each$(` + args + `))`, expr: `ids[0]`},
	{name: "mapped iterator", decl: `func each$(` + params + `) iter.Seq[string] { return func(yield func(string) bool) { yield(@) } }; func map$(seq iter.Seq[string], f func(string) string) iter.Seq[string] { return func(yield func(string) bool) { for v := range seq { if !yield(f(v)) { return } } } }`, pre: `var id string; for v := range map$(each$(` + args + `), strings.ToLower) { id = v }`, expr: `id`},
	{name: "method that iterates", picked: true, decl: `type list$ struct{ ids []string }; func (l *list$) All() iter.Seq[string] { return func(yield func(string) bool) { for _, v := range l.ids { if !yield(v) { return } } } }`, pre: `l := &list${ids: []string{@}}; var id string; for v := range l.All() { id = v }`, expr: `id`},
	{name: "field with a function", decl: `type shop$ struct{ of func(` + params + `) string }`, pre: `counter := shop${of: func(` + params + `) string { return @ }}`, expr: `counter.of(` + args + `)`},
	{name: "injected function", decl: `type shop$ struct{ of func(` + params + `) string }; func newShop$(of func(` + params + `) string) *shop$ { return &shop${of: of} }`, pre: `counter := newShop$(func(` + params + `) string { return @ })`, expr: `counter.of(` + args + `)`},
	{name: "function parameter", decl: `func ask$(of func() string) string { return of() }`, expr: `ask$(func() string { return @ })`},
	{name: "returned function", decl: `func maker$(` + params + `) func() string { return func() string { return @ } }`, pre: `of := maker$(` + args + `)`, expr: `of()`},
	{name: "function with an error", decl: `func maker$(` + params + `) func() (string, error) { return func() (string, error) { return @, nil } }`, pre: `id, err := maker$(` + args + `)(); if err != nil { return err }`, expr: `id`},
	{name: "callback", decl: `func lend$(use func(string), ` + params + `) { use(@) }`, pre: `var id string; lend$(func(v string) { id = v }, ` + args + `)`, expr: `id`},
	{name: "method value", decl: `type ticket$ struct{ id string }; func (t ticket$) Key() string { return t.id }`, pre: `t := ticket${id: @}; of := t.Key`, expr: `of()`},
	{name: "map of functions", pre: `of := map[string]func() string{"id": func() string { return @ }}`, expr: `of["id"]()`},
	{name: "slice of functions", picked: true, pre: `of := []func() string{func() string { return @ }}`, expr: `of[0]()`},
	{name: "local once value", pre: `of := sync.OnceValue(func() string { return @ })`, expr: `of()`},
	{name: "type parameter", decl: `type keyed$ interface{ Key() string }; type ticket$ struct{ id string }; func (t ticket$) Key() string { return t.id }; func key$[T keyed$](t T) string { return t.Key() }`, expr: `key$(ticket${id: @})`},
	{name: "generic container", decl: `type held$[T any] struct{ v T }; func (h *held$[T]) Get() T { return h.v }`, pre: `h := &held$[string]{v: @}`, expr: `h.Get()`},
	{name: "one of two implementations", decl: `type keyed$ interface{ Key() string }; type ticket$ struct{ id string }; func (t ticket$) Key() string { return t.id }; type coupon$ struct{ code string }; func (c *coupon$) Key() string { return c.code }`, pre: `var k keyed$ = &coupon${code: @}`, expr: `k.Key()`},
	{name: "implementation in a field", decl: `type keyed$ interface{ Key() string }; type ticket$ struct{ id string }; func (t ticket$) Key() string { return t.id }; type coupon$ struct{ code string }; func (c *coupon$) Key() string { return c.code }; type bag$ struct{ k keyed$ }`, pre: `bag := bag${k: ticket${id: @}}`, expr: `bag.k.Key()`},
	{name: "list of implementations", picked: true, decl: `type keyed$ interface{ Key() string }; type ticket$ struct{ id string }; func (t ticket$) Key() string { return t.id }; type coupon$ struct{ code string }; func (c *coupon$) Key() string { return c.code }`, pre: `var id string; for _, k := range []keyed${ticket${id: @}} { id = k.Key() }`, expr: `id`},
	{name: "channel of a goroutine", pre: `c1 := make(chan string, 1); go func() { c1 <- @ }()`, expr: `<-c1`},
	{name: "channel of a function", decl: `func feed$(` + params + `) <-chan string { c1 := make(chan string, 1); c1 <- @; return c1 }`, expr: `<-feed$(` + args + `)`},
	{name: "channel in a field", decl: `type pipe$ struct{ ids chan string }`, pre: `p := &pipe${ids: make(chan string, 1)}; p.ids <- @`, expr: `<-p.ids`},
	{name: "channel of structs", decl: `type ticket$ struct{ id string }`, pre: `c1 := make(chan ticket$, 1); c1 <- ticket${id: @}; t := <-c1`, expr: `t.id`},
	{name: "range over a channel", pre: `c1 := make(chan string, 1); c1 <- @; close(c1); var id string; for v := range c1 { id = v }`, expr: `id`},
	{name: "select", pre: `c1 := make(chan string, 1); c1 <- @; var id string; select { case id = <-c1: case <-ctx.Done(): return ctx.Err() }`, expr: `id`},
}
