import java.io.FileWriter;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import javax.management.Attribute;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * Writes what brokers expose as a CSV: at whole multiples of five seconds, node by node in threads of their own, so that
 * a broker that is stopped keeps nobody waiting. Kafka's JmxTool asks for names once; errors' meters appear later.
 *
 * Arguments: file, then node=port for each broker. Columns: asked_ms (the multiple of five seconds), answered_ms (when
 * this value was), node, mbean, attribute, value.
 */
public class JmxReader {
    private static final long INTERVAL_MS = 5000;
    private static final List<String> WANTED = List.of(
        "kafka.server:type=ReplicaManager,*",
        "kafka.server:type=ReplicaFetcherManager,*",
        "kafka.server:type=DelayedOperationPurgatory,*",
        "kafka.controller:*",
        "kafka.network:type=RequestMetrics,*");
    private static final String[] GAUGE = {"Value", "Count"};
    private static final String[] HISTOGRAM = {"Count", "Mean", "Max", "50thPercentile", "99thPercentile"};

    public static void main(String[] arguments) throws Exception {
        PrintWriter out = new PrintWriter(new FileWriter(arguments[0], true), true);
        for (int n = 1; n < arguments.length; n++) {
            String[] node = arguments[n].split("=");
            Thread thread = new Thread(() -> read(out, node[0], node[1]));
            thread.start();
        }
    }

    private static void read(PrintWriter out, String node, String port) {
        MBeanServerConnection connection = null;
        while (true) {
            try {
                Thread.sleep(INTERVAL_MS - System.currentTimeMillis() % INTERVAL_MS);
                if (connection == null) {
                    String url = "service:jmx:rmi:///jndi/rmi://127.0.0.1:" + port + "/jmxrmi";
                    JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(url), Map.of());
                    connection = connector.getMBeanServerConnection();
                }
                long asked = System.currentTimeMillis() / INTERVAL_MS * INTERVAL_MS;
                List<String> lines = new ArrayList<>();
                for (String pattern : WANTED) {
                    Set<ObjectName> names = new TreeSet<>(connection.queryNames(new ObjectName(pattern), null));
                    Set<String> idle = idle(connection, names);
                    for (ObjectName name : names) {
                        String request = name.getKeyProperty("request");
                        if (request == null || !idle.contains(request)) {
                            lines.addAll(values(connection, name, asked, node));
                        }
                    }
                }
                synchronized (out) {
                    lines.forEach(out::println);
                }
            } catch (InterruptedException end) {
                return;
            } catch (Exception gone) {
                connection = null; // killed, or not started again yet
            }
        }
    }

    /** APIs that nobody asked for: most of a hundred, with eight histograms each. */
    private static Set<String> idle(MBeanServerConnection connection, Set<ObjectName> names) throws Exception {
        Set<String> idle = new TreeSet<>();
        for (ObjectName name : names) {
            boolean total = "TotalTimeMs".equals(name.getKeyProperty("name"));
            if (total && ((Number) connection.getAttribute(name, "Count")).longValue() == 0) {
                idle.add(name.getKeyProperty("request"));
            }
        }
        return idle;
    }

    private static List<String> values(MBeanServerConnection connection, ObjectName name, long asked, String node)
            throws Exception {
        String[] wanted = name.getKeyProperty("name").endsWith("Ms") ? HISTOGRAM : GAUGE;
        List<Attribute> found = connection.getAttributes(name, wanted).asList();
        String place = asked + "," + System.currentTimeMillis() + "," + node + ",\"" + name + "\",";
        return found.stream()
            .filter(attribute -> attribute.getValue() instanceof Number)
            .map(attribute -> place + attribute.getName() + "," + attribute.getValue())
            .collect(Collectors.toList());
    }
}
