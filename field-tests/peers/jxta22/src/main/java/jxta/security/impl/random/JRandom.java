package jxta.security.impl.random;

import java.security.SecureRandom;

/** Stand-in for the lost jxta.security. */
public class JRandom extends SecureRandom {
}
