package main

// window is the sequence diagram of the README. It shows two mistakes on a queue with
// content-based deduplication, within the deduplication interval of five minutes.
func window() string {
	const (
		producer, queue, consumer = 150, 470, 760
		width, height             = 880, 520
	)
	return draw(width, height, "The deduplication interval of a FIFO queue", windowDescription, func(c *canvas) {
		for _, lane := range []struct {
			x    int
			name string
		}{{producer, "producer (plain SDK)"}, {queue, "FIFO queue"}, {consumer, "consumer"}} {
			c.rect(lane.x-85, 16, 170, 32, "box")
			c.text(lane.x, 37, "head", "middle", lane.name)
			c.line(lane.x, 48, lane.x, height-16, "line", "3 4")
		}
		c.rect(queue-6, 90, 12, 330, "memory")

		to, from := queue-8, queue+8
		at := func(y int, time string) { c.text(20, y+5, "head", "start", time) }

		at(90, "0:00")
		c.text(producer+14, 83, "small", "start", "scene A: body X")
		c.arrow(producer, to, 90, "line", "")
		c.text(from+14, 83, "small good", "start", "A is delivered")
		c.arrow(from, consumer, 90, "good", "")
		c.text(from+14, 112, "small", "start", "the queue remembers the hash of X")

		at(150, "1:00")
		c.text(producer+14, 143, "small", "start", "scene B: body X, B only in an attribute")
		c.arrow(producer, to, 150, "line", "")
		c.arrow(to, producer, 172, "line", "5 4")
		c.text(producer+14, 189, "small", "start", "success")
		c.line(from, 150, from+34, 150, "bad", "")
		c.cross(from+44, 150)
		c.text(from+60, 155, "head bad", "start", "B is lost")

		at(230, "2:00")
		c.text(producer+14, 223, "small", "start", "scene C: the body has sent_at 2:00")
		c.arrow(producer, to, 230, "line", "")
		c.text(from+14, 223, "small good", "start", "C is delivered")
		c.arrow(from, consumer, 230, "good", "")
		c.line(to, 252, to-130, 252, "line", "5 4")
		c.cross(to-142, 252)
		c.text(producer+14, 257, "small", "start", "the answer is lost")

		at(310, "2:02")
		c.text(producer+14, 303, "small", "start", "retry of C: the body has sent_at 2:02")
		c.arrow(producer, to, 310, "line", "")
		c.text(from+14, 303, "head bad", "start", "C is delivered twice")
		c.arrow(from, consumer, 310, "bad", "")
		c.arrow(to, producer, 332, "line", "5 4")
		c.text(producer+14, 349, "small", "start", "success")

		at(420, "5:00")
		c.text(from+14, 425, "small", "start", "the queue forgets the hash of X")

		at(470, "5:01")
		c.text(producer+14, 463, "small", "start", "scene A again: body X")
		c.arrow(producer, to, 470, "line", "")
		c.text(from+14, 463, "small", "start", "A is delivered again")
		c.arrow(from, consumer, 470, "line", "")
	})
}

const windowDescription = "A sequence of a producer, a FIFO queue and a consumer. " +
	"At 0:00 the producer sends scene A with body X; it is delivered, and the queue remembers the hash of X. " +
	"At 1:00 it sends scene B with the same body, which differs in an attribute only; the queue answers success and B is lost. " +
	"At 2:00 it sends scene C with the time of the send in the body; C is delivered, the answer is lost. " +
	"At 2:02 it retries C with another time; the body is new, so C is delivered twice. " +
	"At 5:00 the queue forgets X; scene A sent again at 5:01 is delivered again."
