/* The epochs of rosters on a shared channel, as internal/gateway/rollover.go has them: docs/decisions/rollover.md.
 *
 * A node keeps the KEPT newest rosters that it was given. What it says to all is sealed with one of them; who lacks that one
 * hears nothing. Between two nodes the roster does not matter. Rosters are given to any node at any time, nodes go off the air
 * and come back, and start again, when they forget what they knew of others. The checker tries all orders. When nothing more
 * happens from outside, the nodes must come to where all have the newest roster and all hear all. Where they cannot, no step is
 * left, which is an invalid end state.
 *
 * ops/models/check runs it. With -DVERSION=1 it is the rule before: a start sealed with the oldest roster that it kept, and only
 * who was known to go by an older one than that in use was spoken to alone. That one locks nodes out.
 */
#ifndef VERSION
#define VERSION 2
#endif
#define NODES 3
#define ROSTERS 4
#define KEPT 2
#define LEAVES 2   /* times that somebody leaves the air */
#define STARTS 2

byte has[NODES];             /* bit i: roster i is kept */
byte use[NODES];             /* the one that is sealed with for all */
byte known[NODES * NODES];   /* what n knows that m keeps; 0: nothing */
bool away[NODES];
byte newest, leaves, starts;

#define HAS(set, r) ((set >> r) & 1)
#define NEWEST(set) (((set >> 3) & 1) -> 3 : (((set >> 2) & 1) -> 2 : (((set >> 1) & 1) -> 1 : 0)))
#define OLDEST(set) ((set & 1) -> 0 : (((set >> 1) & 1) -> 1 : (((set >> 2) & 1) -> 2 : 3)))
#define K(n, m) known[n * NODES + m]

/* alone: n speaks to m by itself, and not only to all. */
#if VERSION == 2
#define ALONE(n, m) (K(n, m) == 0 || !HAS(K(n, m), use[n]))
#else
#define ALONE(n, m) (K(n, m) != 0 && NEWEST(K(n, m)) < use[n])
#endif
#define HEARS(n, m) (!away[n] && !away[m] && (HAS(has[m], use[n]) || ALONE(n, m)))

/* give adds a roster and drops the oldest of too many. */
inline give(n, r) {
	has[n] = has[n] | (1 << r);
	if
	:: r >= KEPT && HAS(has[n], 0) && (HAS(has[n], 1) + HAS(has[n], 2) + HAS(has[n], 3) >= KEPT) -> has[n] = has[n] & ~1
	:: else
	fi;
	if
	:: HAS(has[n], 1) && (HAS(has[n], 2) + HAS(has[n], 3) >= KEPT) -> has[n] = has[n] & ~2
	:: else
	fi;
	if
	:: !HAS(has[n], use[n]) -> use[n] = OLDEST(has[n])
	:: else
	fi
}

#define GOOD2(n, m) (HAS(has[m], use[n]))
#define ALLGOOD (NEWEST(has[0]) == newest && NEWEST(has[1]) == newest && NEWEST(has[2]) == newest && \
	GOOD2(0, 1) && GOOD2(0, 2) && GOOD2(1, 0) && GOOD2(1, 2) && GOOD2(2, 0) && GOOD2(2, 1))

/* outside: what may happen at any time, so often. */
#define NODE(n) (n == 0 || n == 1 || n == 2)

inline outside(n) {
	if
	:: newest < ROSTERS - 1 && !away[n] -> newest++; give(n, newest)
	:: leaves < LEAVES && !away[n] -> leaves++; away[n] = true
	:: away[n] -> away[n] = false
	:: starts < STARTS -> starts++; K(n, 0) = 0; K(n, 1) = 0; K(n, 2) = 0;
#if VERSION == 1
		use[n] = OLDEST(has[n])
#endif
	fi
}

/* says: n tells m what it keeps, and the roster that m lacks; each only if that is news. */
#define NEWS(n, m) (K(m, n) != has[n] || HAS(has[m], use[n]) && use[n] > use[m] || TELLS(n, m))
#define TELLS(n, m) (K(n, m) != 0 && NEWEST(K(n, m)) < NEWEST(has[n]))

inline says(n, m) {
	K(m, n) = has[n];
	if
	:: HAS(has[m], use[n]) && use[n] > use[m] -> use[m] = use[n]
	:: else
	fi;
	if
	:: TELLS(n, m) ->
		if
		:: NEWEST(has[m]) < NEWEST(has[n]) -> give(m, NEWEST(has[n]))
		:: else
		fi;
		if /* it is acknowledged, where that is heard */
		:: HEARS(m, n) -> K(n, m) = has[m]
		:: else
		fi
	:: else
	fi
}

/* seals: all are known to have the newest one. */
#define FOLLOWS(n, m) (n == m || K(n, m) != 0 && NEWEST(K(n, m)) >= NEWEST(has[n]))
#define MAYSEAL(n) (use[n] < NEWEST(has[n]) && FOLLOWS(n, 0) && FOLLOWS(n, 1) && FOLLOWS(n, 2))

#define PAIR(n, m) :: HEARS(n, m) && NEWS(n, m) -> says(n, m)

init {
	atomic {
		has[0] = 1; has[1] = 1; has[2] = 1
	}
	do
	:: atomic { newest < ROSTERS - 1 && !away[0] || leaves < LEAVES && !away[0] || away[0] || starts < STARTS -> outside(0) }
	:: atomic { newest < ROSTERS - 1 && !away[1] || leaves < LEAVES && !away[1] || away[1] || starts < STARTS -> outside(1) }
	:: atomic { newest < ROSTERS - 1 && !away[2] || leaves < LEAVES && !away[2] || away[2] || starts < STARTS -> outside(2) }
	:: atomic { HEARS(0, 1) && NEWS(0, 1) -> says(0, 1) }
	:: atomic { HEARS(0, 2) && NEWS(0, 2) -> says(0, 2) }
	:: atomic { HEARS(1, 0) && NEWS(1, 0) -> says(1, 0) }
	:: atomic { HEARS(1, 2) && NEWS(1, 2) -> says(1, 2) }
	:: atomic { HEARS(2, 0) && NEWS(2, 0) -> says(2, 0) }
	:: atomic { HEARS(2, 1) && NEWS(2, 1) -> says(2, 1) }
	:: atomic { MAYSEAL(0) -> use[0] = NEWEST(has[0]) }
	:: atomic { MAYSEAL(1) -> use[1] = NEWEST(has[1]) }
	:: atomic { MAYSEAL(2) -> use[2] = NEWEST(has[2]) }
	:: atomic { newest == ROSTERS - 1 && !away[0] && !away[1] && !away[2] && ALLGOOD -> break }
	od
}
